package s3

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// leastConforming is the smallest share of the cases that must pass. Cases about ACLs, and those that run commands of
// VersityGW itself to make its users, do not count.
const leastConforming = 0.95

// TestFullFlow runs the conformance suite of VersityGW, 765 cases. Those in testdata/full-flow.txt fail, for the reason
// that stands above them, and all others pass. Of those that fail and count, a third have policies that let everybody write.
func TestFullFlow(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	program := suite(t)
	excused, uncounted := excuses(t), 0
	passed, failed := runSuite(t, program, "full-flow", "--versioning-enabled")
	for _, name := range casesAlone() {
		if _, fails := failed[name]; !fails {
			t.Errorf("%s passes among the others: it need not run alone", name)
			continue
		}
		delete(failed, name)
		also, fails := runSuite(t, program, name)
		passed += also
		maps.Copy(failed, fails)
	}
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		if group, ok := excused[name]; ok {
			if group <= uncountedGroups {
				uncounted++
			}
			t.Logf("%s:%s", name, failed[name])
		} else {
			t.Errorf("%s:%s", name, failed[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(excused)) {
		if _, fails := failed[name]; !fails { // some run in several ways
			t.Errorf("%s passes: take it off the list", name)
		}
	}
	counted := passed + len(failed) - uncounted
	share := float64(passed) / float64(counted)
	t.Logf("%d of %d cases pass, %.1f %% of the %d that count", passed, passed+len(failed), share*100, counted)
	if passed < 600 || share < leastConforming {
		t.Errorf("only %d cases pass", passed)
	}
}

// casesAlone are the cases that need an organization without buckets. In the whole suite, cases that failed before them leave
// theirs.
func casesAlone() []string { return []string{"ListBuckets_empty_success"} }

// runSuite runs a part of the suite against an endpoint of its own. It returns how many of its cases pass, and why others fail.
func runSuite(t *testing.T, program string, part ...string) (passed int, failed map[string]string) {
	t.Helper()
	w := open(t)
	args := []string{"test", "--access", w.org.full.id, "--secret", w.org.full.secret, "--endpoint", w.server.URL}
	cmd := exec.CommandContext(t.Context(), program, append(args, part...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"AWS_REGION=" + model.S3Region, "HOME=" + cmd.Dir}
	out, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("%v\n%s", err, out)
	}
	failed = map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAll(out, nil)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		verdict, rest, _ := strings.Cut(lines.Text(), " ")
		name, why, _ := strings.Cut(strings.TrimSpace(rest), ":")
		switch verdict {
		case "PASS":
			passed++
		case "FAIL":
			failed[name] = why
		}
	}
	return passed, failed
}

// suite returns the program of the suite, which .ci/run installs.
func suite(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("../../internal/objectstore/testdata/installed/versitygw")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("versitygw"); err != nil {
			if slices.Contains(strings.Fields(os.Getenv("HOLDFAST_STORES")), "versitygw") {
				t.Fatal(err)
			}
			t.Skip("versitygw is not installed; .ci/run installs it")
		}
	}
	return program
}

// uncountedGroups is the number of groups at the beginning of the list that are about VersityGW itself and ACLs.
const uncountedGroups = 2

// excuses reads the list of cases that fail. It returns the number of the group of each.
func excuses(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("testdata/full-flow.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, group, heading := map[string]int{}, -1, false // the list begins with a heading of its own
	for line := range strings.Lines(string(text)) {
		name := strings.TrimSpace(line)
		if strings.HasPrefix(name, "#") && !heading {
			group++
		}
		if heading = strings.HasPrefix(name, "#"); name != "" && !heading {
			all[name] = group
		}
	}
	return all
}
