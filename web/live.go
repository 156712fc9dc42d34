package web

import (
	"cmp"
	"net/http"
	"time"
)

const (
	// liveInterval is how often a page that is followed is rendered anew.
	liveInterval = time.Second
	// liveTimeout is how long a browser may take to receive a message.
	liveTimeout = 30 * time.Second
)

// follow answers with server-sent events: one now, and one whenever the page would be another, until it is not live
// any more, the person is signed out, or the appliance stops.
func (req *request) follow(h handler, a answer) {
	release, err := req.engine.Core.Watchers.Watch(req.call)
	if err != nil {
		req.fail(answer{}, err)
		return
	}
	defer release()
	if !a.live {
		req.w.WriteHeader(http.StatusNoContent) // has the browser not ask again
		return
	}
	control := http.NewResponseController(req.w)
	if err := control.SetReadDeadline(time.Time{}); err != nil { // the server's is for a request that ends
		req.fail(answer{}, err)
		return
	}
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	for name, value := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		req.w.Header().Set(name, value)
	}
	send := func(message string) error {
		_ = control.SetWriteDeadline(time.Now().Add(liveTimeout))
		_, err := req.w.Write([]byte(message))
		return cmp.Or(err, control.Flush())
	}
	for shown, changed := "", true; ; {
		message := ":\n\n"
		if changed {
			page, err := req.execute(a, "")
			if err != nil {
				req.opts.Log.Error("render page", "page", a.page, "error", err)
				return
			}
			if now := page.String(); now != shown {
				message, shown = "data: changed\n\n", now
			}
		}
		if send(message) != nil || !a.live {
			return
		}
		if changed = req.pause(a); req.ended() {
			return
		}
		if err := req.identifyAgain(); err != nil {
			return
		}
		if !changed {
			continue
		}
		if a, err = h(req); err != nil {
			return
		}
	}
}

// pause waits for liveInterval and reports whether a page may have changed in it.
func (req *request) pause(a answer) (changed bool) {
	began := time.Now()
	changed = a.wait == nil || a.wait(liveInterval)
	timer := time.NewTimer(liveInterval - time.Since(began))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-req.r.Context().Done():
	case <-req.engine.Core.Watchers.Ended():
	}
	return changed
}

// ended reports whether no browser follows a page any more, or the appliance stops.
func (req *request) ended() bool {
	select {
	case <-req.engine.Core.Watchers.Ended():
		return true
	default:
		return req.r.Context().Err() != nil
	}
}
