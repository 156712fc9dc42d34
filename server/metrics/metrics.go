package metrics

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"holdfast/engine"
	"holdfast/engine/model"
)

// Metrics are the appliance's figures. Those of an engine are included after Watch.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	backups  *prometheus.CounterVec
	took     prometheus.Histogram
	failures prometheus.Counter
	gaps     prometheus.Counter
}

// New returns metrics that are all zero.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_http_requests_total", Help: "Requests of the API by operation and status.",
		}, []string{"operation", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "holdfast_http_request_duration_seconds", Help: "Time from a request's head to its answer, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
		}, []string{"operation"}),
		backups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_backups_total", Help: "Backups that ended since the start, by outcome.",
		}, []string{"outcome"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "holdfast_backup_duration_seconds", Help: "Duration of completed backups.",
			Buckets: prometheus.ExponentialBuckets(0.5, 3, 10),
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "holdfast_database_failures_total", Help: "Databases that did not start any more, since the start.",
		}),
	}
	m.gaps = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "holdfast_wal_gaps_total", Help: "Stretches of WAL that were lost, since the start.",
	})
	for _, outcome := range []string{"completed", "failed"} { // a rate needs an initial zero
		m.backups.WithLabelValues(outcome)
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "holdfast_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": version},
	})
	info.Set(1)
	m.registry.MustRegister(m.requests, m.duration, m.backups, m.took, m.failures, m.gaps, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Request records a request after its response.
func (m *Metrics) Request(operation model.Action, status int, took time.Duration) {
	m.requests.WithLabelValues(string(operation), strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(string(operation)).Observe(took.Seconds())
}

// Event records an event of the appliance.
func (m *Metrics) Event(event model.Event) {
	switch event.Type {
	case model.EventBackupCompleted:
		m.backups.WithLabelValues("completed").Inc()
		m.took.Observe(event.Took.Seconds())
	case model.EventBackupFailed:
		m.backups.WithLabelValues("failed").Inc()
	case model.EventDatabaseFailed:
		m.failures.Inc()
	case model.EventRecoveryGap:
		m.gaps.Inc()
	}
}

// Watch adds the engine's own figures, which are collected at each scrape.
func (m *Metrics) Watch(e *engine.Engine, log *slog.Logger) {
	m.registry.MustRegister(&collector{engine: e, log: log})
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}
