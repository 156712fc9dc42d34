package s3

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// toolsVariable lists the tools that .ci/run has got, whose tests must then run.
const toolsVariable = "HOLDFAST_S3_TOOLS"

// TestTools uses the endpoint with what people use, by the scripts in testdata.
func TestTools(t *testing.T) {
	t.Parallel()
	bin, err := filepath.Abs("testdata/installed/python/bin")
	if err != nil {
		t.Fatal(err)
	}
	for tool, program := range map[string]string{"aws-cli": "aws", "boto3": "python", "s3cmd": "s3cmd", "rclone": "rclone", "restic": "restic"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			expected := strings.Contains(" "+os.Getenv(toolsVariable)+" ", " "+tool+" ")
			at := filepath.Join(bin, program)
			if _, err := os.Stat(at); err != nil {
				if at, err = exec.LookPath(program); tool == "boto3" || err != nil {
					if expected {
						t.Fatalf("%s is missing", program)
					}
					t.Skipf("%s is not installed; .ci/run installs it", program)
				}
			}
			w := open(t)
			w.runTool(t, tool, at, bin)
		})
	}
}

// runTool runs the script of a tool in a directory with files to store: small, big, and 50 in tree.
func (w *world) runTool(t *testing.T, tool, program, bin string) {
	dir := t.TempDir()
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
	script, err := filepath.Abs("testdata/" + tool + ".sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", script)
	if tool == "boto3" {
		cmd = exec.Command(program, strings.TrimSuffix(script, ".sh")+"_client.py")
	}
	cmd.Dir = dir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "AWS_") && !strings.HasPrefix(variable, "PATH=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+dir, "PATH="+bin+":"+os.Getenv("PATH"), "HOST="+strings.TrimPrefix(w.server.URL, "http://"),
		"AWS_ACCESS_KEY_ID="+w.org.full.id, "AWS_SECRET_ACCESS_KEY="+w.org.full.secret, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ENDPOINT_URL_S3="+w.server.URL)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
