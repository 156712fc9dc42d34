package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast/cli/remote"
	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/engine/move"
	"holdfast/engine/postgres"
	"holdfast/internal/durable"
	"holdfast/server/operator"
)

// stream is the file name that stands for standard output or input.
const stream = "-"

// mover holds the flags of export-all and import-all.
type mover struct {
	config
	passphraseFile string
	json           bool
}

func (m *mover) command(use, short string, do func(context.Context, *cobra.Command, string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("name the one file, or %s", stream)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.load(cmd.Flags()); err != nil {
				return err
			}
			return do(cmd.Context(), cmd, args[0])
		},
	}
	m.registerCommon(cmd.Flags())
	cmd.Flags().BoolVar(&m.json, "json", false, "print JSON")
	cmd.Flags().StringVar(&m.passphraseFile, "passphrase-file", "", "file with the passphrase that the archive is encrypted with (as age -p does)")
	return cmd
}

func newAdminExportAll() *cobra.Command {
	m := &mover{}
	cmd := m.command("export-all FILE|-", "Write the whole appliance into one file", m.exportAll)
	cmd.Long = `Write the whole appliance into one file, or to standard output, while it runs or when it is stopped: the metadata, secret.key,
certificates, objects, backups with their WAL, and databases. A database that runs comes as it is when its backup is made, at
the beginning; one that does not run, and all of them when the appliance is stopped, with its files. Data that a restore
replaced stays behind, and so does the config file. Large objects that are in the copy off-site only (--objects-local-size) stay
there: the archive says how many. An appliance made of it reads them with the same --offsite, to which it copies nothing, and fetches them
all without --objects-local-size; then it needs a prefix of its own. Where the disk is too small for them, use holdfast recover instead.

The file holds every secret there is. It is made with mode 0600 and is not encrypted, unless --passphrase-file names a
file with a passphrase; then it is an age file, which ` + "`age -d`" + ` opens too. It appears under its name once it is whole.`
	cmd.Example = "  holdfast admin export-all /mnt/appliance.tar\n" +
		"  holdfast admin export-all - | ssh other holdfast admin import-all -"
	return cmd
}

func newAdminImportAll() *cobra.Command {
	m := &mover{}
	cmd := m.command("import-all FILE|-", "Make a data directory of a file of export-all", m.importAll)
	cmd.Long = `Make a data directory of a file that ` + "`holdfast admin export-all`" + ` has written, or of standard input. The directory must be
empty or absent. Nothing of the file counts before all of it was read and compared with its checksums; an import that was
cut off is simply begun again. Databases that came with a backup alone are rebuilt when ` + "`holdfast serve`" + ` starts.

PostgreSQL must be there in the databases' major versions. Leave the old appliance stopped: both would have the same keys.`
	cmd.Example = "  holdfast admin import-all /mnt/appliance.tar"
	return cmd
}

// exportAll writes the archive. A process that asks the appliance, or works on
// its files, switches to their owner, but the process that writes the archive
// must not. So exportAll runs another process and saves its output.
func (m *mover) exportAll(ctx context.Context, cmd *cobra.Command, file string) error {
	if err := mustExist(m.DataDir); err != nil {
		return err
	}
	passphrase, err := m.passphrase()
	if err != nil {
		return err
	}
	if file == stream {
		if out, ok := cmd.OutOrStdout().(*os.File); ok && term.IsTerminal(int(out.Fd())) {
			return usageError{errors.New("a terminal is no place for an archive: redirect standard output, or name a file")}
		}
		return m.encrypted(cmd.OutOrStdout(), passphrase, func(w io.Writer) error { return m.export(ctx, w) })
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return usageError{fmt.Errorf("%s is there already: name another file", file)}
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	if err := durable.WriteStream(file, 0o600, func(w io.Writer) error {
		return m.encrypted(w, passphrase, func(w io.Writer) error { return m.exportApart(ctx, w, cmd.ErrOrStderr()) })
	}); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	made := operator.MetadataBackup{Path: file, SizeBytes: info.Size()}
	return printResult(cmd.OutOrStdout(), m.json, made, showWritten)
}

func showWritten(w io.Writer, made operator.MetadataBackup) {
	fmt.Fprintf(w, "%s (%d bytes)\n", made.Path, made.SizeBytes)
}

// exportApart runs another process of this program and copies its export to w.
func (m *mover) exportApart(ctx context.Context, w, stderr io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	child := exec.CommandContext(ctx, program, "admin", "export-all", stream, "--data-dir", m.DataDir)
	if m.User != "" {
		child.Args = append(child.Args, "--user", m.User)
	}
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.Env = withoutVariable(os.Environ(), "HOLDFAST_PASSPHRASE_FILE")
	var said bytes.Buffer
	child.Stdout, child.Stderr = newCounter(w, stderr, "exported"), &said
	if err := child.Run(); err != nil {
		if text := strings.TrimPrefix(strings.TrimSpace(said.String()), "holdfast: "); text != "" {
			return errors.Join(ctx.Err(), errors.New(text))
		}
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

func withoutVariable(environment []string, name string) (rest []string) {
	for _, variable := range environment {
		if !strings.HasPrefix(variable, name+"=") {
			rest = append(rest, variable)
		}
	}
	return rest
}

// export writes the archive: from the running appliance, or from its files.
func (m *mover) export(ctx context.Context, w io.Writer) (err error) {
	name := operatorName()
	if err := giveUpRoot(m.DataDir, m.User); err != nil {
		return err
	}
	err = m.exportRunning(ctx, w, name)
	if !errors.Is(err, errNotRunning) {
		return err
	}
	eng, err := openEngine(m.engine(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close(ctx)) }()
	appliance := operator.Appliance{Engine: eng}
	call := appliance.ExportCall(name)
	err = eng.ApplianceExport(ctx, call, w)
	eng.Core.Finish(call, err)
	return err
}

func (m *mover) exportRunning(ctx context.Context, w io.Writer, name string) error {
	dir, err := postgres.SocketDir(m.DataDir)
	if err != nil {
		return err
	}
	asked, err := json.Marshal(operator.NewExport{Operator: name})
	if err != nil {
		return err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://holdfast"+operator.ExportPath, bytes.NewReader(asked))
	if err != nil {
		return err
	}
	answer, err := operatorClient(dir).Do(post)
	if isNotRunning(err) {
		return errNotRunning
	}
	if err != nil {
		return fmt.Errorf("ask the appliance: %w", err)
	}
	defer answer.Body.Close()
	if answer.Header.Get(operator.HeaderFailed) != "" {
		var response operator.Response
		if err := json.NewDecoder(answer.Body).Decode(&response); err != nil {
			return fmt.Errorf("read the appliance's answer: %w", err)
		}
		return &model.Error{Code: response.Code, Message: response.Message}
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the appliance answered %s: is it of another version?", answer.Status)
	}
	if _, err := io.Copy(w, answer.Body); err != nil {
		return fmt.Errorf("the export was cut off, the appliance's log may say why: %w", err)
	}
	return nil
}

// importAll unpacks the archive into the data directory. It opens the archive
// before it drops root.
func (m *mover) importAll(ctx context.Context, cmd *cobra.Command, file string) error {
	in := cmd.InOrStdin()
	if file != stream {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("open the archive: %w", err)
		}
		defer f.Close()
		in = f
	}
	passphrase, err := m.passphrase()
	if err != nil {
		return err
	}
	plain, err := decrypted(remote.Interruptible(ctx, in), passphrase)
	if err != nil {
		return err
	}
	log, err := newLog(cmd.ErrOrStderr(), "text", "info")
	if err != nil {
		return err
	}
	if _, err := giveUpRootOwning(m.DataDir, m.User, log); err != nil { // serve logs which user it is
		return err
	}
	if err := makeDataDir(m.DataDir); err != nil {
		return err
	}
	counted := newCounter(io.Discard, cmd.ErrOrStderr(), "read")
	made, err := engine.ApplianceImport(m.DataDir, io.TeeReader(plain, counted))
	counted.end()
	if err != nil {
		return err
	}
	return printResult(cmd.OutOrStdout(), m.json, made, func(w io.Writer, made move.Manifest) {
		fmt.Fprintf(w, "%s is the appliance of %s, with %d databases; `holdfast serve` starts it\n",
			m.DataDir, made.CreatedAt.Local().Format(time.DateTime), len(made.Databases))
		if made.ObjectsAway > 0 {
			fmt.Fprintf(w, "%d large objects are in the copy off-site only: start it with the --offsite of the old appliance, and without --objects-local-size, until `holdfast offsite status` "+
				"shows none as only off-site. Nothing is copied there meanwhile. Then start it with a prefix of its own, which `holdfast offsite init` prepares\n", made.ObjectsAway)
		}
	})
}

// passphrase reads the passphrase, "" if there is none.
func (m *mover) passphrase() (string, error) {
	if m.passphraseFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(m.passphraseFile)
	if err != nil {
		return "", usageError{fmt.Errorf("passphrase-file: %w", err)}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", usageError{fmt.Errorf("passphrase-file: %s has nothing in its first line", m.passphraseFile)}
	}
	return line, nil
}

// encrypted calls write with w, or with an age writer on w if there is a
// passphrase.
func (m *mover) encrypted(w io.Writer, passphrase string, write func(io.Writer) error) error {
	if passphrase == "" {
		return write(w)
	}
	recipient, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return fmt.Errorf("encrypt the archive: %w", err)
	}
	sealed, err := age.Encrypt(w, recipient)
	if err != nil {
		return fmt.Errorf("encrypt the archive: %w", err)
	}
	if err := write(sealed); err != nil {
		return err
	}
	return sealed.Close()
}

// ageMagic starts an age file.
const ageMagic = "age-encryption.org/"

func decrypted(r io.Reader, passphrase string) (io.Reader, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	head, err := in.Peek(len(ageMagic))
	if err != nil && !errors.Is(err, io.EOF) { // a short file is reported where it is read
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	if string(head) != ageMagic {
		return in, nil
	}
	if passphrase == "" {
		return nil, usageError{errors.New("the archive is encrypted: --passphrase-file names a file with its passphrase")}
	}
	identity, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, fmt.Errorf("decrypt the archive: %w", err)
	}
	plain, err := age.Decrypt(in, identity)
	if err != nil {
		return nil, fmt.Errorf("decrypt the archive: is it the right passphrase? %w", err)
	}
	return plain, nil
}

// counter shows on a terminal how many bytes were written; elsewhere it shows
// nothing.
type counter struct {
	w     io.Writer
	shown *os.File // nil shows nothing
	what  string
	n     int64
	last  time.Time
}

func newCounter(w, stderr io.Writer, what string) *counter {
	c := &counter{w: w, what: what}
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		c.shown = file
	}
	return c
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.set(c.n + int64(n))
	return n, err
}

// set sets how many bytes are shown.
func (c *counter) set(n int64) {
	c.n = n
	if c.shown != nil && time.Since(c.last) > 100*time.Millisecond {
		c.last = time.Now()
		fmt.Fprintf(c.shown, "\r%s %d MB", c.what, c.n>>20)
	}
}

// end finishes the counter's line.
func (c *counter) end() {
	if c.shown != nil && !c.last.IsZero() {
		fmt.Fprintln(c.shown)
	}
}
