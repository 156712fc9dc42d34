// Packbundle writes the PostgreSQL archive that the build tag "bundled"
// embeds:
//
//	go run ./engine/postgres/binaries/internal/packbundle [-bin DIR] engine/postgres/binaries/bundle.tar.zst
//	go build -tags bundled .
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"holdfast/engine/postgres/binaries"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "packbundle:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("bin", "", "directory of the PostgreSQL programs to pack (default: the newest installed)")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("say the one file to write")
	}
	search := binaries.Search{
		Explicit: *dir, NoFetch: true,
		Bundle: func() (io.ReadCloser, error) { return nil, binaries.ErrNoBundle },
	}
	bin, err := search.Find(context.Background())
	if err != nil {
		return err
	}
	return write(flag.Arg(0), bin)
}

// write builds the archive under another name, so that a build never sees half.
func write(path string, bin binaries.Set) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := binaries.Pack(w, bin); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", path, bin.Detail)
	return nil
}
