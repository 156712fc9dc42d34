package s3

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/s3tools"
)

// toolsVariable lists the tools that .ci/run has got, whose tests must then run.
const toolsVariable = "HOLDFAST_S3_TOOLS"

// installed is the directory in which .ci/run installs programs.
const installed = "testdata/installed"

// tool is a program that people use with S3.
type tool struct {
	name string
	// program is a path, or a name on the PATH. Its script is testdata/NAME.sh, unless it has args.
	program string
	args    []string
	needs   string // a path beside the program, "" for none
}

func tools() []tool {
	return []tool{
		{name: "aws-cli", program: installed + "/python/bin/aws"},
		{name: "aws-sdk-go", program: installed + "/bin/aws-sdk-go", args: []string{}},
		{name: "aws-sdk-js", program: "node", args: []string{"testdata/aws-sdk-js/client.mjs"}, needs: "testdata/aws-sdk-js/node_modules/@aws-sdk/client-s3"},
		{name: "boto3", program: installed + "/python/bin/python", args: []string{"testdata/boto3_client.py"}},
		{name: "litestream", program: installed + "/bin/litestream", needs: installed + "/python/bin/aws"},
		{name: "rclone", program: "rclone"},
		{name: "restic", program: "restic"},
		{name: "s3cmd", program: installed + "/python/bin/s3cmd"},
		{name: "terraform", program: "terraform", needs: installed + "/python/bin/aws"},
	}
}

// TestTools uses the endpoint with what people use, by the scripts in testdata.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, tool := range tools() {
		t.Run(tool.name, func(t *testing.T) {
			t.Parallel()
			program := tool.find(t)
			w := open(t)
			dir := t.TempDir()
			writeFiles(t, dir)
			w.writeConfiguration(t, dir, tool.name)
			var cmd *exec.Cmd
			if tool.args == nil {
				cmd = exec.Command("bash", "-euo", "pipefail", absolute(t, "testdata/"+tool.name+".sh"))
			} else {
				cmd = exec.Command(program)
				for _, arg := range tool.args {
					cmd.Args = append(cmd.Args, absolute(t, arg))
				}
			}
			cmd.Env = w.environment(t, dir)
			runIn(t, cmd, dir)
		})
	}
}

// find returns the path of the program. It skips the test if the tool is not installed, unless .ci/run has got it.
func (tool tool) find(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath(tool.program)
	if err == nil && tool.needs != "" {
		_, err = os.Stat(tool.needs)
	}
	if err != nil && slices.Contains(strings.Fields(os.Getenv(toolsVariable)), tool.name) {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("%v; .ci/run installs it", err)
	}
	return absolute(t, program)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// writeFiles writes files to store: small, big, and 50 in tree.
func writeFiles(t *testing.T, dir string) {
	t.Helper()
	files := map[string]int{"small": 10, "big": 12_345_678}
	for i := range 50 {
		files[fmt.Sprintf("tree/%d", i)] = i * i * 100
	}
	for name, size := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, random(uint64(size), size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// writeConfiguration writes what people are shown for a tool to NAME.configuration, if there is such.
func (w *world) writeConfiguration(t *testing.T, dir, name string) {
	t.Helper()
	access := s3tools.Access{ID: w.org.full.id, Secret: w.org.full.secret, URL: w.server.URL, Region: "us-east-1"}
	for _, tool := range s3tools.Tools() {
		if tool.Name != name {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name+".configuration"), []byte(tool.Write(access)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// environment returns the environment of a tool, with the endpoint and a key of the organization.
func (w *world) environment(t *testing.T, home string) (env []string) {
	t.Helper()
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "AWS_") && !strings.HasPrefix(variable, "PATH=") {
			env = append(env, variable)
		}
	}
	path := strings.Join([]string{absolute(t, installed+"/python/bin"), absolute(t, installed+"/bin"), os.Getenv("PATH")}, string(os.PathListSeparator))
	return append(env, "HOME="+home, "PATH="+path, "HOST="+strings.TrimPrefix(w.server.URL, "http://"),
		"AWS_ACCESS_KEY_ID="+w.org.full.id, "AWS_SECRET_ACCESS_KEY="+w.org.full.secret, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ENDPOINT_URL_S3="+w.server.URL)
}

// runIn runs a command, which must succeed.
func runIn(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestBackrest keeps the backups of a PostgreSQL server here: pgBackRest creates its repository, archives the WAL, backs
// up, restores and expires. It accepts only TLS, and neither it nor PostgreSQL runs as root.
func TestBackrest(t *testing.T) {
	t.Parallel()
	tool{name: "pgbackrest", program: "pgbackrest"}.find(t)
	script, err := os.ReadFile("testdata/pgbackrest.sh")
	if err != nil {
		t.Fatal(err)
	}
	w := open(t)
	secure := httptest.NewTLSServer(w.server.Config.Handler)
	defer secure.Close()
	if status, code, _ := w.ask(t, w.org.full, "PUT", "/backrest", "", nil); status != 200 {
		t.Fatal(status, code)
	}
	dir, err := os.MkdirTemp("", "s3") // short, for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", string(script))
	cmd.Env = append(w.environment(t, dir), "BUCKET=backrest", "TLS_HOST="+secure.Listener.Addr().String())
	if os.Geteuid() == 0 {
		become(t, cmd, "postgres", dir)
	}
	runIn(t, cmd, dir)
}

// become has a user run a command, and own its directory.
func become(t *testing.T, cmd *exec.Cmd, name, dir string) {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if errUID != nil || errGID != nil {
		t.Fatal(errUID, errGID)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
