package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// s3Programs is the directory in which .ci/run installs clients of S3.
const s3Programs = "../server/s3/testdata/installed"

// TestReadmeObjectStorage pastes the README's commands for aws-cli into a shell. Then it uses the configuration that
// `holdfast key s3` prints for other tools with these tools.
func TestReadmeObjectStorage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Object storage\n")
	_, section, _ = strings.Cut(section, "```sh\n")
	commands, _, found := strings.Cut(section, "```")
	if !found || !strings.Contains(commands, "aws s3 cp") {
		t.Fatal("the README's storage part does not begin with aws s3 cp")
	}
	m := newMachine(t)
	m.start("--s3-listen", "127.0.0.1:0")
	if !hasS3Tool(t, "aws-cli", awsProgram) {
		pasteS3(t, m, "holdfast bucket create photos\necho 'hello, world' | holdfast object put - photos/notes/hello.txt")
	}
	for _, tool := range []struct{ name, program, script, want string }{
		{"aws-cli", awsProgram, commands, "notes/hello.txt\nhello, world\n"},
		{"boto3", "python/bin/python", `holdfast key s3 --for boto3 > storage.py
echo 'print([b["Name"] for b in s3.list_buckets()["Buckets"]])' >> storage.py
python storage.py`, "['photos']\n"},
		{"rclone", "rclone", `holdfast key s3 --for rclone > rclone.conf
rclone --config rclone.conf cat holdfast:photos/notes/hello.txt`, "hello, world\n"},
		{"restic", "restic", `eval "$(holdfast key s3 --for restic)"
export RESTIC_PASSWORD=secret RESTIC_CACHE_DIR=cache
restic init && restic --no-lock cat config`, `"version"`},
		{"litestream", "bin/litestream", `holdfast key s3 --for litestream > litestream.yml
sed -i "s#/path/to/database.db#$PWD/shop.db#; s#bucket: litestream#bucket: photos#" litestream.yml
python -c 'import sqlite3; sqlite3.connect("shop.db").executescript("pragma journal_mode = wal; create table orders (n);")'
litestream replicate -config litestream.yml -once
litestream restore -config litestream.yml -o copy.db $PWD/shop.db
python -c 'import sqlite3; print(sqlite3.connect("copy.db").execute("select name from sqlite_master").fetchall())'`, "('orders',)"},
	} {
		t.Run(tool.name, func(t *testing.T) {
			if !hasS3Tool(t, tool.name, tool.program) {
				t.Skipf("%s is not installed; .ci/run installs it", tool.name)
			}
			if out := pasteS3(t, m, tool.script); !strings.Contains(out, tool.want) {
				t.Errorf("the commands show\n%s\nwithout %q", out, tool.want)
			}
		})
	}
}

// awsProgram is what makes the bucket of the others, where it is installed.
const awsProgram = "python/bin/aws"

// hasS3Tool reports whether a client is installed, as it must be if .ci/run has got it.
func hasS3Tool(t *testing.T, name, program string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(s3Programs, program))
	if err != nil {
		_, err = exec.LookPath(filepath.Base(program))
	}
	if err != nil && slices.Contains(strings.Fields(os.Getenv("HOLDFAST_S3_TOOLS")), name) {
		t.Fatal(err)
	}
	return err == nil
}

// pasteS3 gives commands to a shell that has the clients of S3, signed in to the appliance.
func pasteS3(t *testing.T, m *machine, commands string) string {
	t.Helper()
	installed, err := filepath.Abs(s3Programs)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail")
	shell.Stdin = strings.NewReader(commands)
	shell.Dir = home
	path := strings.Join([]string{filepath.Dir(program), installed + "/python/bin", installed + "/bin", os.Getenv("PATH")}, string(os.PathListSeparator))
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "AWS_") {
			shell.Env = append(shell.Env, variable)
		}
	}
	shell.Env = append(shell.Env, "HOME="+home, "XDG_CONFIG_HOME="+home, "HOLDFAST_URL="+m.api, "HOLDFAST_API_KEY="+m.key, "PATH="+path)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return string(out)
}
