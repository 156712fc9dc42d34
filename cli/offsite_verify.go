package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/engine/model"
	"holdfast/engine/offsite"
)

func newOffsiteVerify() *cobra.Command {
	var sample string
	c := &copyCommand{}
	cmd := c.command("verify", "Read the copy back, and name what is damaged", func(ctx context.Context, cmd *cobra.Command, at offsite.Location) error {
		share, err := parseShare(sample)
		if err != nil {
			return err
		}
		shown := newCounter(io.Discard, cmd.ErrOrStderr(), "read")
		report, err := offsite.Verify(ctx, at, time.Now(), offsite.VerifyOptions{Share: share, Progress: func(done, _ int64) { shown.set(done) }})
		shown.end()
		if err != nil {
			return err
		}
		if err := printResult(cmd.OutOrStdout(), c.json, report, showVerified); err != nil {
			return err
		}
		return report.Err()
	})
	cmd.Long = `Read the copy back, decrypt it and compare it with its checksums, and name what is damaged or missing. All points and the whole
log are read, and all files or a random part of them. It needs no right to write, and works beside the appliance. The exit
code is 1 when something is damaged or nothing can be recovered.`
	cmd.Example = "  holdfast offsite verify s3://backups/home --passphrase-file /root/offsite.passphrase --sample 5%"
	cmd.Flags().StringVar(&sample, "sample", "100%", "which part of the files to read, chosen at random")
	return cmd
}

// parseShare parses a percentage.
func parseShare(text string) (float64, error) {
	number, found := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if !found || err != nil || !(percent > 0 && percent <= 100) {
		return 0, usageError{errors.New("sample: must be a percentage above 0, such as 5%")}
	}
	return percent / 100, nil
}

func showVerified(w io.Writer, v offsite.Verified) {
	if v.Point != nil {
		fmt.Fprintf(w, "newest point  %s\n", v.Point.Local().Format(time.DateTime+" MST"))
	}
	fmt.Fprintf(w, "points        %d\nfiles         %d, of which %d were read (%s)\n", v.Points, v.Files, v.Read, amount(v.Bytes))
	for _, d := range v.Damage {
		what := d.Object
		if d.Content != "" {
			what += ", " + d.String()
		}
		fmt.Fprintf(w, "damaged       %s: %s\n", what, d.Reason)
	}
	if len(v.Damage) > 0 && v.Point != nil {
		fmt.Fprint(w, recoverable)
	}
}

// recoverable says what a damaged copy is good for.
const recoverable = `recoverable   everything else: ` + "`holdfast recover`" + ` passes over what is damaged and reports it, and --at chooses an earlier moment
remedy        ` + model.NewOffsiteCopy + "\n"
