package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
)

// sent is a connection of a client that sends some bytes and then closes its side.
type sent struct {
	net.Conn
	rest     *bytes.Reader
	answered bytes.Buffer
}

// Read implements net.Conn.
func (s *sent) Read(b []byte) (int, error) { return s.rest.Read(b) }

// Write implements net.Conn.
func (s *sent) Write(b []byte) (int, error) { return s.answered.Write(b) }

// packet returns a packet of the first phase: its length, a code and the body.
func packet(code uint32, body string) []byte {
	header := binary.BigEndian.AppendUint32(nil, uint32(headerSize+len(body)))
	return append(binary.BigEndian.AppendUint32(header, code), body...)
}

// startup returns a StartupMessage with these names and values.
func startup(fields ...string) []byte {
	body := ""
	for _, field := range fields {
		body += field + "\x00"
	}
	return packet(protocol3<<16, body+"\x00")
}

func TestReadOpening(t *testing.T) {
	t.Parallel()
	handshake := []byte{tlsClient, tlsVersion3, 1, 0, 5}
	ssl, gss := packet(sslRequest, ""), packet(gssRequest, "")
	message := startup("user", "app", "database", "shop", "application_name", "x")
	for name, tt := range map[string]struct {
		sends    []byte
		answered string
		want     opening
		err      error
	}{
		"a session":            {sends: message, want: opening{user: "app", database: "shop", first: message}},
		"of the user's name":   {sends: startup("user", "app"), want: opening{user: "app", database: "app", first: startup("user", "app")}},
		"TLS":                  {sends: append(ssl, handshake...), answered: "S", want: opening{encrypted: true, negotiate: true, first: handshake}},
		"TLS at once":          {sends: append(handshake, 1, 2, 3), want: opening{encrypted: true, first: append(handshake, 1, 2, 3)}},
		"GSS, then a session":  {sends: append(gss, message...), answered: "N", want: opening{user: "app", database: "shop", first: message}},
		"a cancellation":       {sends: packet(cancelRequest, "pidkkkk!"), want: opening{cancel: true, first: packet(cancelRequest, "pidkkkk!")}},
		"nothing":              {err: io.EOF},
		"half a header":        {sends: message[:5], err: io.ErrUnexpectedEOF},
		"half a message":       {sends: message[:len(message)-4], err: io.ErrUnexpectedEOF},
		"no user":              {sends: startup("database", "shop"), err: errMalformed},
		"SSL, then a session":  {sends: append(packet(sslRequest, ""), message...), answered: "S", err: errMalformed},
		"SSL, then nothing":    {sends: packet(sslRequest, ""), answered: "S", err: io.EOF},
		"GSS twice":            {sends: append(packet(gssRequest, ""), packet(gssRequest, "")...), answered: "N", err: errMalformed},
		"HTTP":                 {sends: []byte("GET / HTTP/1.1\r\n\r\n"), err: errMalformed},
		"an older protocol":    {sends: packet(2<<16, "user"), err: errMalformed},
		"a long message":       {sends: binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, longest+1), protocol3<<16), err: errMalformed},
		"a huge message":       {sends: binary.BigEndian.AppendUint32([]byte{255, 255, 255, 255}, protocol3<<16), err: errMalformed},
		"a long cancellation":  {sends: packet(cancelRequest, string(make([]byte, longestKey+5))), err: errMalformed},
		"a short cancellation": {sends: packet(cancelRequest, "pid"), err: errMalformed},
	} {
		conn := &sent{rest: bytes.NewReader(tt.sends)}
		o, err := readOpening(conn)
		if !errors.Is(err, tt.err) || conn.answered.String() != tt.answered {
			t.Errorf("%s: %v and %q, want %v and %q", name, err, conn.answered.String(), tt.err, tt.answered)
		}
		if err == nil && (o.user != tt.want.user || o.database != tt.want.database || !bytes.Equal(o.first, tt.want.first) ||
			o.encrypted != tt.want.encrypted || o.negotiate != tt.want.negotiate || o.cancel != tt.want.cancel) {
			t.Errorf("%s: %+v, want %+v", name, o, tt.want)
		}
	}
}

// Whatever a stranger sends, no more of it is read, kept and answered than a client needs, and what is kept is what the
// stranger sent.
func FuzzReadOpening(f *testing.F) {
	f.Add(startup("user", "app", "database", "shop"))
	f.Add(append(packet(gssRequest, ""), startup("user", "app")...))
	f.Add(append(packet(sslRequest, ""), tlsClient, tlsVersion3, 1, 0, 5))
	f.Add(packet(cancelRequest, "pidkkkk!"))
	f.Add([]byte{255, 255, 255, 255, 0, 3, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := &sent{rest: bytes.NewReader(data)}
		o, err := readOpening(conn)
		read := len(data) - conn.rest.Len()
		if read > headerSize+longest || len(o.first) > longest || conn.answered.Len() > 2 {
			t.Fatalf("read %d bytes, kept %d, answered %q", read, len(o.first), conn.answered.String())
		}
		if err == nil && !bytes.Equal(o.first, data[read-len(o.first):read]) {
			t.Fatalf("kept %x of %x", o.first, data[:read])
		}
		if err == nil && !o.encrypted && !o.cancel && o.user == "" {
			t.Fatal("a session of nobody")
		}
	})
}
