package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

type logInput struct {
	DatabaseInput
	Limit  int           `query:"limit" minimum:"1" maximum:"1000" default:"200" doc:"How many of the newest lines at most."`
	Level  wire.LogLevel `query:"level" doc:"Only entries of this level, with the lines that continue them."`
	Search string        `query:"search" minLength:"1" maxLength:"200" doc:"Only lines with this text, in any case."`
	Since  time.Time     `query:"since" doc:"Only from this time on."`
	Until  time.Time     `query:"until" doc:"Only before this time."`
	After  string        `query:"after" minLength:"1" maxLength:"64" doc:"Only what follows: cursor of an earlier answer. Then limit is how many of the first lines."`
	Wait   string        `query:"wait" pattern:"^([1-9]|[1-5][0-9]|60)s$" patternDescription:"a number of seconds from 1s to 60s" example:"30s" doc:"How long to wait for a line: 1s to 60s. Without it, the answer is immediate."`
}

// Resolve implements huma.Resolver.
func (in *logInput) Resolve(ctx huma.Context) []error {
	if ctx.Query("until") != "" && !in.Until.After(in.Since) {
		return []error{model.Invalid("until", "must be after since")}
	}
	return nil
}

func (h *handlers) databaseLog(ctx context.Context, call *model.Call, in *logInput) (wire.DatabaseLog, error) {
	filter := databases.LogFilter{
		Level: string(in.Level), Search: in.Search, Since: in.Since, Until: in.Until, Limit: in.Limit, After: in.After,
	}
	if in.Wait == "" {
		part, err := h.engine.Databases.ServerLog(call, in.ID, filter)
		return newDatabaseLog(part), err
	}
	longest, err := time.ParseDuration(in.Wait)
	if err != nil {
		return wire.DatabaseLog{}, model.Invalid("wait", "must be a number of seconds from 1s to 60s")
	}
	part, err := h.engine.Databases.ServerLogWait(ctx, call, in.ID, filter, longest)
	return newDatabaseLog(part), err
}

func newDatabaseLog(part databases.LogPart) wire.DatabaseLog {
	return wire.DatabaseLog{Cursor: part.Cursor, Lines: convert(part.Lines, func(line databases.LogLine) wire.LogLine {
		return wire.LogLine{At: utcOrAbsent(&line.At), Level: orAbsent(line.Level), Text: line.Text}
	})}
}

type metricsInput struct {
	DatabaseInput
	Range wire.MetricsRange `query:"range" default:"day" doc:"How far back."`
}

func (h *handlers) databaseMetrics(_ context.Context, call *model.Call, in *metricsInput) (wire.Metrics, error) {
	series := model.SeriesDay()
	if in.Range == wire.MetricsMonth {
		series = model.SeriesMonth()
	}
	samples, err := h.engine.Databases.Metrics(call, in.ID, series)
	return wire.Metrics{Range: in.Range, StepSeconds: int64(series.Step.Seconds()), Samples: convert(samples, newMetricsSample)}, err
}

func newMetricsSample(s model.Sample) wire.MetricsSample {
	view := wire.MetricsSample{At: utc(s.At), SizeBytes: s.SizeBytes, Connections: s.Connections, CommitsPerSecond: s.Commits}
	if s.Archive != nil {
		lost := s.Archive.RPO.Seconds()
		view.WALLagBytes, view.RPOSeconds = &s.Archive.WALLag, &lost
	}
	return view
}
