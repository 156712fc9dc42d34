package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Hostile clients per normal client: how many connections are idle, how many
// send a head or a body one byte at a time, and what share sends endless heads.
const (
	idleEach      = 10
	slowHeadsEach = 0.5
	slowBodyEach  = 0.1
	hugeEach      = 0.05
)

// hostileFigures counts the results.
type hostileFigures struct{ idle, cutIdle, cutHeads, cutBodies, refusedHuge atomic.Int64 }

// String reports the counts.
func (b *hostileFigures) String() string {
	return fmt.Sprintf("%d idle connections opened, %d of them cut; %d slow heads cut, %d slow bodies refused, %d huge heads refused",
		b.idle.Load(), b.cutIdle.Load(), b.cutHeads.Load(), b.cutBodies.Load(), b.refusedHuge.Load())
}

// beginAttacks starts all attacks; they end when over does.
func (s *soak) beginAttacks(over context.Context, actors *sync.WaitGroup) {
	each := func(share float64, do func(n int)) {
		for n := range max(1, int(share*float64(len(s.clients)))) {
			actors.Go(func() {
				for over.Err() == nil {
					do(n)
					think(over, 100*time.Millisecond)
				}
			})
		}
	}
	each(idleEach, func(n int) { s.idle(over, n%2 == 0) })
	each(slowHeadsEach, func(int) { s.slowHead(over) })
	each(slowBodyEach, func(int) { s.slowBody(over) })
	each(hugeEach, func(n int) { s.hugeHead(over, n%2 == 0) })
}

// attack opens connections and passes them to do until over ends.
func (s *soak) attack(over context.Context, do func(conn net.Conn, answers *bufio.Reader)) {
	conn, err := (&net.Dialer{}).DialContext(over, "tcp", s.m.listen)
	if err != nil {
		if ends, _ := over.Deadline(); over.Err() == nil && time.Now().Before(ends) { // a dialer has its own timer
			s.t.Errorf("connect: %v", err)
			think(over, 5*time.Second) // thousands would report it
		}
		return
	}
	defer conn.Close()
	defer context.AfterFunc(over, func() { conn.Close() })()
	do(conn, bufio.NewReader(conn))
}

// idle connects and sends nothing, or nothing after one request.
func (s *soak) idle(over context.Context, asks bool) {
	s.attack(over, func(conn net.Conn, answers *bufio.Reader) {
		s.figures.hostile.idle.Add(1)
		if asks {
			_, err := fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", s.m.listen)
			s.answeredOK(over, err, answers)
		}
		for { // read the rest of the response, then nothing until the connection is cut
			if _, err := answers.ReadByte(); err != nil {
				break
			}
		}
		if over.Err() == nil {
			s.figures.hostile.cutIdle.Add(1)
		}
	})
}

func (s *soak) answeredOK(over context.Context, err error, answers *bufio.Reader) {
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(answers, nil)
	}
	if over.Err() != nil {
		return
	}
	if err != nil {
		s.t.Errorf("ask for the health: %v", err)
		return
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		s.t.Errorf("ask for the health: %s", answer.Status)
	}
}

// drip repeatedly sends text, one byte at a time, until the server responds or
// disconnects.
func (s *soak) drip(over context.Context, what string, conn net.Conn, answers *bufio.Reader, text string) (status int) {
	said := make(chan int, 1)
	go func() {
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			said <- 0
			return
		}
		answer.Body.Close()
		said <- answer.StatusCode
	}()
	patience := time.After(chaosPatience)
	for n := 0; ; n++ {
		_, _ = conn.Write([]byte{text[n%len(text)]}) // the response is read
		select {
		case status := <-said:
			return status
		case <-patience:
			s.t.Errorf("%s is listened to for more than %s", what, chaosPatience)
			conn.Close()
			return <-said
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *soak) slowHead(over context.Context) {
	s.attack(over, func(conn net.Conn, answers *bufio.Reader) {
		fmt.Fprint(conn, "GET /v1/databases HTTP/1.1\r\nHost: h\r\n")
		status := s.drip(over, "a slow head", conn, answers, "X-Slow: very\r\n")
		if over.Err() == nil && status >= 500 {
			s.t.Errorf("a slow head is answered by %d", status)
		}
		if over.Err() == nil {
			s.figures.hostile.cutHeads.Add(1)
		}
	})
}

func (s *soak) slowBody(over context.Context) {
	s.attack(over, func(conn net.Conn, answers *bufio.Reader) {
		fmt.Fprintf(conn, "PUT /v1/databases/%s/allowlist HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n", s.anyDatabase(), s.m.listen, s.keys[0])
		status := s.drip(over, "a slow body", conn, answers, " ")
		if over.Err() == nil && (status >= 500 || status == http.StatusOK) {
			s.t.Errorf("a slow body is answered by %d", status)
		}
		if over.Err() == nil {
			s.figures.hostile.cutBodies.Add(1)
		}
	})
}

// hugeHead sends a head beyond the limit: one long field, or many.
func (s *soak) hugeHead(over context.Context, long bool) {
	head := strings.Repeat("X-Field: of many\r\n", 20_000)
	if long {
		head = "X-Long: " + strings.Repeat("x", 300_000) + "\r\n"
	}
	s.attack(over, func(conn net.Conn, answers *bufio.Reader) {
		var sent sync.WaitGroup
		sent.Go(func() { fmt.Fprintf(conn, "GET /v1/databases HTTP/1.1\r\nHost: h\r\n%s\r\n", head) }) // the server may disconnect first
		defer sent.Wait()
		defer conn.Close()
		answer, err := http.ReadResponse(answers, nil)
		if over.Err() != nil {
			return
		}
		if err != nil { // it disconnected before everything was sent
			s.figures.hostile.refusedHuge.Add(1)
			return
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			s.t.Errorf("a huge head is answered by %s", answer.Status)
		}
		s.figures.hostile.refusedHuge.Add(1)
	})
}
