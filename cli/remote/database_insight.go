package remote

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newDatabaseLog(s *session) *cobra.Command {
	var o client.LogOptions
	var level string
	var since time.Duration
	var follow bool
	cmd := s.aboutDatabase("log DATABASE", "Show the newest lines of a database's server log", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			o.Level = wire.LogLevel(strings.ToUpper(level))
			if since > 0 {
				o.Since = time.Now().Add(-since)
			}
			log, err := t.api.GetDatabaseLog(t.ctx, db.ID, o)
			for err == nil {
				if err = t.show(log, func(w io.Writer) { logLines(w, log) }); err != nil || !follow {
					break
				}
				o.After, o.Wait, o.Limit = log.Cursor, time.Minute, 1000
				log, err = t.api.GetDatabaseLog(t.ctx, db.ID, o)
			}
			return err
		})
	cmd.Example = "  holdfast db log shop --level error --since 1h\n  holdfast db log shop --search 'permission denied'\n  holdfast db log shop --follow"
	cmd.Flags().StringVar(&level, "level", "", "only entries of this level, such as error or fatal")
	cmd.Flags().StringVar(&o.Search, "search", "", "only lines with this text, in any case")
	cmd.Flags().DurationVar(&since, "since", 0, "only lines of this last time, such as 30m")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new lines until interrupted; with --json, a document for each answer")
	cmd.Flags().IntVar(&o.Limit, "lines", 200, "how many of the newest lines at most, up to 1000")
	return cmd
}

func logLines(w io.Writer, log wire.DatabaseLog) {
	for _, line := range log.Lines {
		fmt.Fprintln(w, line.Text)
	}
}

func newDatabaseMetrics(s *session) *cobra.Command {
	var month bool
	cmd := s.aboutDatabase("metrics DATABASE", "Show a database's activity over the last day", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			within := wire.MetricsDay
			if month {
				within = wire.MetricsMonth
			}
			metrics, err := t.api.GetDatabaseMetrics(t.ctx, db.ID, within)
			if err != nil {
				return err
			}
			return t.show(metrics, func(w io.Writer) { metricsTable(w, metrics) })
		})
	cmd.Flags().BoolVar(&month, "month", false, "over the last thirty days, by the hour")
	return cmd
}

func metricsTable(w io.Writer, m wire.Metrics) {
	rows := [][]string{{"AT", "SIZE", "CONNECTIONS", "COMMITS/S"}}
	for _, s := range m.Samples {
		rows = append(rows, []string{formatTime(&s.At), size(s.SizeBytes), fmt.Sprint(s.Connections), fmt.Sprintf("%.1f", s.CommitsPerSecond)})
	}
	columns(w, rows)
}
