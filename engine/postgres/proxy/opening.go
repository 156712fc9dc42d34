package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// The codes of the packets with which a client begins (pqcomm.h).
const (
	cancelRequest = 1234<<16 | 5678
	sslRequest    = 1234<<16 | 5679
	gssRequest    = 1234<<16 | 5680
	protocol3     = 3
)

const (
	headerSize  = 8     // length and code
	longest     = 10000 // MAX_STARTUP_PACKET_LENGTH
	longestKey  = 256   // of a request to cancel, from PostgreSQL 18 on
	tlsHeader   = 5     // of a record
	tlsClient   = 0x16  // a record of the handshake
	tlsVersion3 = 3     // the major version of all records
)

// opening is how a client began.
type opening struct {
	cancel    bool
	encrypted bool   // a TLS handshake follows
	negotiate bool   // after an SSLRequest, which the server must be sent first
	first     []byte // what the client sent, for the server
	user      string // of a session without TLS
	database  string
}

var errMalformed = errors.New("not a client of PostgreSQL")

// readOpening reads what a client asks for. It answers requests for encryption, so that
// a client must begin a handshake before the server is started for it.
func readOpening(conn net.Conn) (o opening, err error) {
	gss := false
	for {
		header := make([]byte, headerSize)
		if _, err := io.ReadFull(conn, header); err != nil {
			return o, err
		}
		if header[0] == tlsClient && header[1] == tlsVersion3 { // sslnegotiation=direct
			return opening{encrypted: true, first: header}, nil
		}
		length, code := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[4:])
		switch {
		case length == headerSize && code == sslRequest:
			return readHandshake(conn)
		case length == headerSize && code == gssRequest && !gss:
			gss = true
			if _, err := conn.Write([]byte{'N'}); err != nil {
				return o, err
			}
		case code == cancelRequest && length > headerSize+4 && length <= headerSize+4+longestKey:
			o.cancel = true
			o.first, err = readPacket(conn, header)
			return o, err
		case code>>16 == protocol3 && length > headerSize && length <= longest:
			if o.first, err = readPacket(conn, header); err == nil {
				err = o.parse()
			}
			return o, err
		default:
			return o, errMalformed
		}
	}
}

// readHandshake accepts a request for TLS and reads the header of the first record.
func readHandshake(conn net.Conn) (opening, error) {
	if _, err := conn.Write([]byte{'S'}); err != nil {
		return opening{}, err
	}
	record := make([]byte, tlsHeader)
	if _, err := io.ReadFull(conn, record); err != nil {
		return opening{}, err
	}
	if record[0] != tlsClient || record[1] != tlsVersion3 {
		return opening{}, errMalformed
	}
	return opening{encrypted: true, negotiate: true, first: record}, nil
}

// readPacket reads the rest of a packet and returns all of it.
func readPacket(conn io.Reader, header []byte) ([]byte, error) {
	packet := make([]byte, binary.BigEndian.Uint32(header))
	copy(packet, header)
	_, err := io.ReadFull(conn, packet[headerSize:])
	return packet, err
}

// parse reads the names in a StartupMessage.
func (o *opening) parse() error {
	fields := bytes.Split(o.first[headerSize:], []byte{0})
	for n := 0; n+1 < len(fields) && len(fields[n]) > 0; n += 2 {
		switch string(fields[n]) {
		case "user":
			o.user = string(fields[n+1])
		case "database":
			o.database = string(fields[n+1])
		}
	}
	if o.user == "" {
		return errMalformed
	}
	if o.database == "" {
		o.database = o.user
	}
	return nil
}

// The SQLSTATEs of refusals.
const (
	invalidAuthorization = "28000"
	cannotConnectNow     = "57P03"
)

// refusal is the FATAL error that a client is sent.
type refusal struct{ code, message string }

func (r refusal) packet() []byte {
	var body []byte
	for _, field := range []string{"SFATAL", "VFATAL", "C" + r.code, "M" + r.message} {
		body = append(append(body, field...), 0)
	}
	body = append(body, 0)
	packet := binary.BigEndian.AppendUint32([]byte{'E'}, uint32(len(body)+4))
	return append(packet, body...)
}

// noEntry is PostgreSQL's error for a client that no rule admits.
func noEntry(c *client, o opening) refusal {
	encryption := "no encryption"
	if o.encrypted {
		encryption = "SSL encryption"
	}
	return refusal{invalidAuthorization, fmt.Sprintf("no pg_hba.conf entry for host %q, user %q, database %q, %s",
		c.from.Addr(), o.user, o.database, encryption)}
}
