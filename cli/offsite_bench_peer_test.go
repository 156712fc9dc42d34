package cli_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/objectstore/objectstoretest"
	"holdfast/internal/rounds"
)

// peerRounds is how many machines BenchmarkOffsitePeer measures.
const peerRounds = 3

// BenchmarkOffsitePeer stores the first backup of a database of about 300 MB in an S3 server, over HTTPS, and brings it back: with the
// copy off-site, and with pgBackRest and two processes. Ours takes until the copy has everything, and until the recovered
// database answers; pgBackRest's restore takes until the files are there, without the log and a server. It reports the ratios of the times.
func BenchmarkOffsitePeer(b *testing.B) {
	version, err := exec.Command("pgbackrest", "version").Output()
	if err != nil {
		b.Skip("pgbackrest is not installed")
	}
	b.Logf("compared with %s", strings.TrimSpace(string(version)))
	server := objectstoretest.Servers(b)[0]
	target, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of what ends with a killed machine
	secure := httptest.NewTLSServer(proxy)
	defer secure.Close()
	times := map[string][]float64{}
	for b.Loop() {
		for range peerRounds {
			newPeer(b, server, secure).round(times)
		}
	}
	for _, act := range []string{"backup", "restore"} {
		var ratios []float64
		for i, ours := range times[act+"/ours"] {
			ratios = append(ratios, ours/times[act+"/pgBackRest"][i])
		}
		rounds.Ratios(b, "offsite-"+act+"-time", "pgBackRest", ratios...)
		for _, who := range []string{"ours", "pgBackRest"} {
			b.ReportMetric(rounds.Median(times[act+"/"+who]), "s/"+act+"-"+who)
		}
	}
}

// peer is a machine with a database that pgBackRest backs up as well.
type peer struct {
	*machine
	b      *testing.B
	copied copied
	db     database
	config string // of pgBackRest
}

func newPeer(b *testing.B, server *objectstoretest.Server, secure *httptest.Server) *peer {
	b.Helper()
	p := &peer{machine: newMachine(b), b: b}
	bundle := filepath.Join(filepath.Dir(p.dataDir), "ca.pem")
	if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o644); err != nil {
		b.Fatal(err)
	}
	for name, value := range server.Environment(secure.URL).With("AWS_CA_BUNDLE", bundle) {
		p.env = append(p.env, name+"="+value)
	}
	_, passphrase := p.store(b)
	p.copied = p.prepare(copied{url: "s3://" + server.Bucket(b, false) + "/home", passphrase: passphrase})
	p.start(append(p.copied.serveFlags(), "--backup-interval", "0", "--no-verification")...)
	p.db = p.createDatabase("bench")
	n := &benchedMachine{p.machine, p.connectionURL(p.db.ID)}
	n.pgbench(b, "-i", "-q", "-s", "20")
	p.awaitCopied()
	p.configure(server, strings.TrimPrefix(secure.URL, "https://"))
	return p
}

// configure writes the configuration of pgBackRest, for the same server.
func (p *peer) configure(server *objectstoretest.Server, address string) {
	p.b.Helper()
	data := filepath.Join(p.dataDir, "instances", p.db.ID, "1")
	pid, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		p.b.Fatal(err)
	}
	line := strings.Split(string(pid), "\n") // its fourth line is the port, the fifth the directory of the socket
	dir := filepath.Join(filepath.Dir(p.dataDir), "pgbackrest")
	if err := os.Mkdir(dir, 0o777); err != nil {
		p.b.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		p.b.Fatal(err)
	}
	host, port, _ := strings.Cut(address, ":")
	p.config = filepath.Join(dir, "config")
	text := fmt.Sprintf(`[global]
repo1-type=s3
repo1-s3-bucket=%s
repo1-s3-endpoint=%s
repo1-storage-port=%s
repo1-storage-verify-tls=n
repo1-s3-region=us-east-1
repo1-s3-uri-style=path
repo1-s3-key=%s
repo1-s3-key-secret=%s
repo1-path=/repository
process-max=2
compress-type=zst
compress-level=1
log-level-file=off
log-level-console=warn
lock-path=%s
spool-path=%s
[main]
pg1-path=%s
pg1-port=%s
pg1-socket-path=%s
pg1-user=holdfast
`, server.Bucket(p.b, false), host, port, server.AccessKey, server.SecretKey, dir, dir, data, line[3], line[4])
	if err := os.WriteFile(p.config, []byte(text), 0o644); err != nil {
		p.b.Fatal(err)
	}
	p.pgbackrest("--no-online", "stanza-create")
}

// user returns whom the appliance's servers run as, nil for the user of the test.
func (p *peer) user() *syscall.Credential {
	p.b.Helper()
	info, err := os.Stat(filepath.Join(p.dataDir, "holdfast.db"))
	if err != nil {
		p.b.Fatal(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Getuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
}

// pgbackrest runs a command of it, as the user of the servers.
func (p *peer) pgbackrest(args ...string) {
	p.b.Helper()
	cmd := exec.Command("pgbackrest", append([]string{"--config=" + p.config, "--stanza=main"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.user()}
	if out, err := cmd.CombinedOutput(); err != nil {
		p.b.Fatalf("pgbackrest: %v: %s", err, out)
	}
}

// round measures backup and restore, and ends the machine.
func (p *peer) round(times map[string][]float64) {
	p.b.Helper()
	measure := func(what string, act func()) {
		began := time.Now()
		act()
		times[what] = append(times[what], time.Since(began).Seconds())
	}
	measure("backup/pgBackRest", func() { p.pgbackrest("--type=full", "--start-fast", "--no-archive-check", "backup") })
	measure("backup/ours", func() { p.backup(p.db.ID); p.awaitCopied() })
	restored := filepath.Join(filepath.Dir(p.config), "restored")
	if err := os.Mkdir(restored, 0o700); err != nil {
		p.b.Fatal(err)
	}
	if user := p.user(); user != nil {
		if err := os.Chown(restored, int(user.Uid), int(user.Gid)); err != nil {
			p.b.Fatal(err)
		}
	}
	measure("restore/pgBackRest", func() { p.pgbackrest("--type=none", "--archive-mode=off", "--pg1-path="+restored, "restore") })
	p.killAll()
	fresh := p.elsewhere()
	fresh.env = p.env
	measure("restore/ours", func() { fresh.recoverFrom(p.copied); fresh.awaitAvailable(p.db.ID) })
	if got := query(p.b, fresh.connectionURL(p.db.ID), "select count(*) from pgbench_accounts"); got != "2000000" {
		p.b.Fatalf("%s rows are back", got)
	}
	fresh.stop()
}
