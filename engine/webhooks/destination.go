package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"holdfast/engine/model"
	"holdfast/internal/address"
)

// destinations are the addresses that requests may go to. A name is resolved, each of its addresses is checked, and
// one that passed is dialed: a name that resolves to another address a moment later gains nothing.
type destinations struct {
	// private admits private networks and this machine.
	private bool
}

// check returns an error for an address that requests may not go to. Link-local addresses and those of cloud metadata
// services are never admitted.
func (d destinations) check(to netip.Addr) error {
	if d.private {
		if err := address.Check(to); err != nil {
			return errPrivate
		}
		return nil
	}
	if err := address.CheckPublic(to); err != nil {
		return errPrivate
	}
	return nil
}

// dialTimeout bounds the connection to one address, so that others are left some time if it does not answer.
const dialTimeout = 4 * time.Second

// dial connects to the first address of a host that is admitted and answers.
func (d destinations) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, errNoAddress
	}
	return d.dialFirst(ctx, network, addresses, port)
}

func (d destinations) dialFirst(ctx context.Context, network string, addresses []netip.Addr, port string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	dialer := net.Dialer{Timeout: dialTimeout}
	var err error = errPrivate
	for _, to := range addresses {
		if d.check(to) != nil {
			continue
		}
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(to.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// validate refuses a URL that names an address that is not admitted.
func (d destinations) validate(field, text string) error {
	if err := model.ValidateWebhookURL(field, text, d.private); err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("parse a checked URL: %w", err)
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	literal, err := netip.ParseAddr(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		literal, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	if err == nil && d.check(literal) != nil {
		return model.Invalid(field, "must name a public host; the operator can allow private ones with --webhook-allow-private")
	}
	return nil
}

// dialPlain is dial for http, which is only for addresses that are not public.
func (d destinations) dialPlain(ctx context.Context, network, hostPort string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, hostPort)
	if err != nil {
		return nil, err
	}
	if remote, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || (destinations{}).check(remote.AddrPort().Addr()) == nil {
		return nil, errors.Join(errPlain, conn.Close())
	}
	return conn, nil
}

type dialFunc = func(ctx context.Context, network, hostPort string) (net.Conn, error)

// newClient returns a client that follows no redirects. With a dial of its own it uses no proxy, which would dial
// without the check.
func newClient(dial dialFunc) *http.Client {
	proxy := http.ProxyFromEnvironment
	if dial != nil {
		proxy = nil
	}
	return &http.Client{
		// A redirect would send the message somewhere that nobody has named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: proxy, DialContext: dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: attemptTimeout, ResponseHeaderTimeout: attemptTimeout,
			MaxResponseHeaderBytes: 16 << 10, MaxIdleConnsPerHost: slotsOfWebhook, MaxIdleConns: slotsInAll, IdleConnTimeout: time.Minute,
		},
	}
}
