package importer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"holdfast/engine/model"
)

// wire is a connection that reads prepared bytes, a few at a time, and forgets what is written.
type wire struct {
	net.Conn
	data []byte
	part int
}

func (w *wire) Read(p []byte) (int, error) {
	if len(w.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), w.part)], w.data)
	w.data = w.data[n:]
	return n, nil
}

func (w *wire) Write(p []byte) (int, error) { return len(p), nil }
func (w *wire) Close() error                { return nil }

// passed is what a guard passes on of a server's bytes: every message but notices and notifications, up to the first that
// exceeds the bounds.
func passed(b bounds, data []byte) (out []byte, refused bool) {
	var total, rows, status int64
	for len(data) >= headBytes {
		kind, length := data[0], int64(binary.BigEndian.Uint32(data[1:]))-4
		data = data[headBytes:]
		if kind == 'd' && b.copies && length >= 0 && (b.whole == 0 || length <= b.whole) {
			head := length
			if b.whole == 0 {
				head = min(length, dataPart)
			}
			out = append(out, message(kind, head)...)
		} else {
			total += headBytes + length
			switch kind {
			case 'D':
				rows++
			case 'S':
				status += headBytes + length
			}
			if length < 0 || length > b.message || kind == 'd' || total > b.bytes || status > statusBytes || rows > b.rows && !b.copies {
				return out, true
			}
			if kind != 'N' && kind != 'A' {
				out = append(out, message(kind, length)...)
			}
		}
		body := data[:min(int64(len(data)), length)]
		data = data[len(body):]
		if kind != 'N' && kind != 'A' {
			out = append(out, body...)
		}
	}
	return out, false
}

// FuzzGuard gives the parser of a source's messages any bytes, as answers, streams of changes and rows: it passes on what the
// bounds allow, byte for byte, however the bytes arrive and are read.
func FuzzGuard(f *testing.F) {
	change := append(message('d', 3), 'w', 1, 2)
	f.Add(bytes.Join([][]byte{message('W', 3), {0, 0, 0}, change, change, message('c', 0)}, nil), uint8(1), uint8(7), uint8(1))
	f.Add(bytes.Join([][]byte{message('N', 2), {1, 2}, message('S', 2), {'a', 0}, change, message('Z', 1), {'I'}}, nil), uint8(3), uint8(200), uint8(2))
	f.Add([]byte{'d', 0xff, 0xff, 0xff, 0xff, 1}, uint8(1), uint8(1), uint8(2))
	f.Add([]byte{'D', 0, 0, 0, 3}, uint8(1), uint8(1), uint8(0))
	f.Add(append(message('d', 200), make([]byte, 200)...), uint8(9), uint8(9), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, part, read, mode uint8) {
		data = data[:min(len(data), dataPart)] // one part of a COPY's message at most
		b := bounds{what: "a test", message: 64, bytes: 256, rows: 3, copies: mode%3 > 0}
		if mode%3 == 1 {
			b.whole = 100
		}
		want, refused := passed(b, data)
		g := &guard{Conn: &wire{data: data, part: int(part) + 1}, began: time.Now(), timer: time.NewTimer(time.Hour)}
		defer g.timer.Stop()
		g.r = bufio.NewReaderSize(g.Conn, 128)
		g.bounds.Store(&b)
		var got []byte
		buffer := make([]byte, int(read)+1)
		for {
			n, err := g.Read(buffer)
			got = append(got, buffer[:n]...)
			if err == nil {
				continue
			}
			if (model.CodeOf(err) == model.CodeValidation) != refused {
				t.Errorf("refused: %v, want %v", err, refused)
			}
			break
		}
		if !bytes.Equal(got, want) {
			t.Errorf("passed on %q, want %q", got, want)
		}
	})
}

// FuzzGatewayLogin gives the gateway any bytes as a client's log-in: it admits only those that end with the token.
func FuzzGatewayLogin(f *testing.F) {
	const token = "a token"
	start, err := (&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber, Parameters: map[string]string{"user": "import"}}).Encode(nil)
	if err != nil {
		f.Fatal(err)
	}
	encryption, _ := (&pgproto3.SSLRequest{}).Encode(nil)
	login := func(password string) []byte {
		message, _ := (&pgproto3.PasswordMessage{Password: password}).Encode(nil)
		return message
	}
	f.Add(append(start, login(token)...), uint8(1))
	f.Add(append(append(encryption, start...), login("guess")...), uint8(255))
	f.Add(append(start, 'p', 0x7f, 0xff, 0xff, 0xff), uint8(9))
	f.Add(bytes.Repeat(encryption, 100), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, part uint8) {
		client := &wire{data: bytes.Clone(data), part: int(part) + 1}
		err := (&Gateway{token: token}).authenticate(client, pgproto3.NewBackend(client, client))
		if err == nil && !bytes.Contains(data, login(token)) {
			t.Errorf("admits %q", data)
		}
		if err != nil && bytes.Equal(data, append(start, login(token)...)) {
			t.Errorf("refuses the token: %v", err)
		}
	})
}
