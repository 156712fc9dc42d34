package cli

import (
	"log/slog"
	"net"

	"holdfast/engine/model"
	"holdfast/server"
	"holdfast/server/metrics"
	"holdfast/server/webhook"
)

// watching holds the observers of the appliance's events: Prometheus metrics
// and the operator's webhook, if configured.
type watching struct {
	metrics  *metrics.Metrics // nil without a listener
	listener net.Listener
	webhook  *webhook.Sender // nil without a URL
}

func watch(c config, listener net.Listener, log *slog.Logger) (*watching, error) {
	w := &watching{listener: listener}
	if listener != nil {
		w.metrics = metrics.New(version())
	}
	if c.WebhookURL == "" {
		return w, nil
	}
	var err error
	w.webhook, err = webhook.Open(webhook.Options{URL: c.WebhookURL, SecretFile: c.WebhookSecretFile, Log: log})
	return w, err
}

// event passes an event of the appliance to the observers.
func (w *watching) event(event model.Event) {
	if w.metrics != nil {
		w.metrics.Event(event)
	}
	if w.webhook != nil {
		w.webhook.Event(event)
	}
}

// serve adds the metrics to the server's options.
func (w *watching) serve(opts server.Options) server.Options {
	if w.metrics != nil {
		opts.Metrics, opts.MetricsListener, opts.Answered = w.metrics.Handler(), w.listener, w.metrics.Request
	}
	return opts
}

func (w *watching) close() {
	if w.webhook != nil {
		w.webhook.Close()
	}
}
