package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/testenv"
	"holdfast/server/api/apitest"
)

// program is the binary under test, built once for all tests.
var program string

func TestMain(m *testing.M) {
	if _, ok := os.LookupEnv(linesVariable); ok {
		connectByLines()
		return
	}
	if url, ok := os.LookupEnv(clientVariable); ok {
		connectAndTell(url)
		return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if err := testenv.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "holdfast-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "holdfast")
	if err := buildProgram(program); err != nil {
		fmt.Fprintln(os.Stderr, "build the program:", err)
		return 1
	}
	defer theBrowser.close()
	return m.Run()
}

func buildProgram(path string, flags ...string) error {
	build := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, "holdfast")...)
	build.Stderr = os.Stderr
	return build.Run()
}

// machine is a place where an appliance is started, killed and restarted.
type machine struct {
	t       testing.TB
	program string // the program that serves
	dataDir string
	listen  string
	ports   string
	warm    string   // size of the warm pool
	env     []string // in addition
	initdb  bool     // whether the appliance makes its own template of data directories

	api   string // base URL with /v1
	key   string
	setup string

	description *apitest.Description
	answers     *sync.Map // the data of the last answer by URL

	process *exec.Cmd
	exited  chan error
	log     *lockedBuffer
}

// newMachine creates a place that the appliance's user can enter, and checks at
// the end that nothing runs there.
func newMachine(t testing.TB) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m := &machine{
		t: t, program: program, dataDir: filepath.Join(dir, "data"), listen: freeAddress(t),
		ports: portRange(t, 30), warm: "0", log: &lockedBuffer{}, answers: &sync.Map{},
	}
	t.Cleanup(func() {
		m.stop()
		for _, pid := range m.processes() {
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			t.Errorf("still running: %d %s", pid, bytes.ReplaceAll(command, []byte{0}, []byte{' '}))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("the appliance's log:\n%s", m.log.String())
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return m
}

// portRange returns a range of ports for --postgres-ports that is the test's own until it ends.
func portRange(t testing.TB, count int) string {
	t.Helper()
	first, last := testenv.Ports(t, count)
	return fmt.Sprintf("%d-%d", first, last)
}

// freeAddress returns an address that is the test's own until it ends.
func freeAddress(t testing.TB) string {
	t.Helper()
	port, _ := testenv.Ports(t, 1)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// applianceTime is how long an appliance may take to start or stop: it limits
// itself to 90 s.
const applianceTime = 2 * time.Minute

// start runs `serve` and returns once it has announced its addresses.
func (m *machine) start(args ...string) {
	m.t.Helper()
	announced := m.launch(args...)
	select {
	case text := <-announced:
		m.read(text)
		if m.description == nil && strings.HasPrefix(m.api, "http://") {
			m.description = apitest.Shared(m.t, strings.TrimSuffix(m.api, "/v1"))
		}
	case <-time.After(applianceTime):
		m.t.Fatalf("the appliance did not come up:\n%s", m.log.String())
	}
}

// launch runs `serve`; the channel receives its announcement.
func (m *machine) launch(args ...string) (announced <-chan string) {
	m.t.Helper()
	if !m.initdb {
		theTemplate.link(m)
	}
	return m.launchCommand([]string{"serve"}, args...)
}

// launchCommand runs a command that serves.
func (m *machine) launchCommand(command []string, args ...string) (announced <-chan string) {
	m.t.Helper()
	all := append(append(slices.Clone(command),
		"--data-dir", m.dataDir, "--listen", m.listen, "--postgres-ports", m.ports, "--warm", m.warm, "--no-verification",
		"--budgets", "create_database=1000/1m,create_backup=1000/1m,restore=1000/1m",
	), args...) // retries what is refused meanwhile
	cmd := exec.Command(m.program, all...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = m.log
	cmd.Env = append(os.Environ(), m.env...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.process, m.exited = cmd, make(chan error, 1)
	said, exited := make(chan string, 1), m.exited
	go func() {
		said <- readAnnouncement(stdout)
		_, _ = io.Copy(io.Discard, stdout)
		exited <- cmd.Wait()
	}()
	return said
}

// readAnnouncement reads standard output up to the empty line that ends serve's
// announcement.
func readAnnouncement(r io.Reader) string {
	var text strings.Builder
	lines := bufio.NewScanner(r)
	for empty := 0; empty < 2 && lines.Scan(); {
		if lines.Text() == "" {
			empty++
		}
		fmt.Fprintln(&text, lines.Text())
	}
	return text.String()
}

func (m *machine) read(text string) {
	m.t.Helper()
	find := func(pattern string) string {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(text); found != nil {
			return found[1]
		}
		return ""
	}
	if m.api = find(`API +(http\S+/v1)`); m.api == "" {
		m.t.Fatalf("the appliance did not say where its API is:\n%s\n%s", text, m.log.String())
	}
	m.setup = find(`console +(http\S+token=\S+)`)
	if key := find(`(sk_live_\S+)`); key != "" {
		m.key = key
	}
}

// stop interrupts the appliance as Ctrl-C does and waits for it.
func (m *machine) stop() {
	if m.process == nil {
		return
	}
	_ = m.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-m.exited:
		if err != nil {
			m.t.Errorf("the appliance ended badly: %v", err)
		}
	case <-time.After(applianceTime):
		m.t.Error("the appliance did not end")
		m.kill()
	}
	m.process = nil
}

// kill kills the appliance with SIGKILL; its instances continue.
func (m *machine) kill() {
	m.t.Helper()
	if err := m.process.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	<-m.exited
	m.process = nil
}

// processes returns the postmasters that serve the machine's data directory.
func (m *machine) processes() []int { return processesNaming(m.dataDir) }

// processesNaming returns the processes whose command line names a directory.
func processesNaming(dir string) []int {
	var found []int
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range entries {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(dir)) {
			var pid int
			if _, err := fmt.Sscanf(path, "/proc/%d/cmdline", &pid); err == nil {
				found = append(found, pid)
			}
		}
	}
	return found
}

// envelope wraps every API response.
type envelope struct {
	Data  json.RawMessage
	Meta  map[string]any
	Error *struct{ Code, Message string }
}

// do sends a request with the machine's first key and returns the status and
// the response.
func (m *machine) do(method, path string, body any) (int, envelope) {
	m.t.Helper()
	var reader io.Reader
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
	case io.Reader:
		reader, contentType = b, "application/octet-stream"
	default:
		text, err := json.Marshal(body)
		if err != nil {
			m.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, m.api+path, reader)
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+m.key)
	if reader != nil {
		request.Header.Set("Content-Type", contentType)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, disconnected(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, disconnected(err)
	}
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		m.t.Errorf("%s %s: the answer is no envelope: %v", method, path, err)
	}
	if !m.sameAgain(request, answer.StatusCode, e) {
		m.description.CheckAnswer(m.t, request, answer, text)
	}
	return answer.StatusCode, e
}

// sameAgain reports whether a GET has the answer of the last one, as when a
// test polls. The description need not be compared with it again, which takes
// longer than to get it.
func (m *machine) sameAgain(request *http.Request, status int, e envelope) bool {
	if request.Method != http.MethodGet || status != http.StatusOK {
		return false
	}
	last, _ := m.answers.Swap(request.URL.String(), string(e.Data))
	return last == string(e.Data)
}

// disconnected stands for the response that a dead appliance does not send.
func disconnected(err error) envelope {
	return envelope{Error: &struct{ Code, Message string }{"connection", err.Error()}}
}

// must sends a request, decodes the data into out, and fails the test unless
// the status is 200.
func (m *machine) must(method, path string, body, out any) {
	m.t.Helper()
	status, e := m.do(method, path, body)
	if status != http.StatusOK {
		m.t.Fatalf("%s %s: %d %+v", method, path, status, e.Error)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(e.Data, out); err != nil {
		m.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// command returns a command of the program on the machine's data directory.
func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, append(args, "--data-dir", m.dataDir)...)
	cmd.Env = append(os.Environ(), m.env...)
	return cmd
}

// run runs a command of the program on the machine's data directory.
func (m *machine) run(stdin string, args ...string) (stdout, stderr string, code int) {
	m.t.Helper()
	cmd := m.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		m.t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

// database is what the tests read of a database.
type database struct {
	ID          string
	Status      string
	Port        int
	Operation   *operation
	Credentials struct {
		ConnectionURL string `json:"connection_url"`
	}
}

type operation struct {
	ID, Type, Status, Phase string
	Error                   *string
}

// createDatabase creates a database in the first project.
func (m *machine) createDatabase(name string) database {
	m.t.Helper()
	var db database
	m.must("POST", "/databases", map[string]any{"project": m.project(), "name": name}, &db)
	return db
}

func (m *machine) project() string {
	m.t.Helper()
	var status struct{ Projects []struct{ ID string } }
	m.must("GET", "/agent/status", nil, &status)
	if len(status.Projects) == 0 {
		m.t.Fatal("there is no project")
	}
	return status.Projects[0].ID
}

// lockedBuffer collects what a process writes while others read it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
