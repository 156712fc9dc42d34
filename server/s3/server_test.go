package s3

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestContinue expects 100 Continue for empty bodies on a connection that is used again, as aws-cli does for empty files.
func TestContinue(t *testing.T) {
	t.Parallel()
	host := strings.TrimPrefix(open(t).server.URL, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for range 2 {
		fmt.Fprintf(conn, "PUT /files/empty HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n", host)
		for _, want := range []int{http.StatusContinue, http.StatusForbidden} {
			resp, err := http.ReadResponse(answers, nil)
			if err != nil || resp.StatusCode != want {
				t.Fatalf("answered %+v, error %v; want %d", resp, err, want)
			}
			resp.Body.Close()
		}
	}
}
