package web

import (
	"cmp"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/webhooks"
)

// webhooksData is what webhooks.html shows.
type webhooksData struct {
	core.List[model.Webhook]
	Name, URL, Events string // as typed
	Areas             []string
}

func (req *request) webhooks(cause error) (answer, error) {
	list, err := req.engine.Webhooks.List(req.call, core.Filter{}, req.page())
	data := webhooksData{list, req.form("name"), req.form("url"), cmp.Or(req.form("events"), "*"), model.EventAreas()}
	return answer{page: "webhooks.html", title: "Webhooks", data: data}, cmp.Or(cause, err)
}

// typedEvents returns the events in a form, which commas and spaces separate.
func (req *request) typedEvents() []string {
	return strings.FieldsFunc(req.form("events"), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
}

// webhookSecretData is what webhook_secret.html shows, once.
type webhookSecretData struct {
	Webhook model.Webhook
	Secret  string
}

func (req *request) webhookCreate() (answer, error) {
	w, secret, err := req.engine.Webhooks.Create(req.call, webhooks.NewWebhook{Name: req.form("name"), URL: req.form("url"), Events: req.typedEvents()})
	return answer{page: "webhook_secret.html", title: "Webhook made", data: webhookSecretData{w, secret.Reveal()}}, err
}

func (req *request) webhookRotate() (answer, error) {
	w, secret, err := req.engine.Webhooks.RotateSecret(req.call, req.id())
	return answer{page: "webhook_secret.html", title: "New secret", data: webhookSecretData{w, secret.Reveal()}}, err
}

// webhookData is what webhook.html shows.
type webhookData struct {
	model.Webhook
	Deliveries core.List[model.Delivery]
	Form       webhookForm
}

// webhookForm holds the fields of the form that changes a webhook, as they are or were typed.
type webhookForm struct {
	Name, URL, Events string
	Enabled           bool
}

// Tag identifies what the page shows of the webhook.
func (d webhookData) Tag() string { return webhooks.Tag(d.Webhook) }

func (req *request) webhook(cause error) (answer, error) {
	w, err := req.engine.Webhooks.Get(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	deliveries, err := req.engine.Webhooks.Deliveries(req.call, w.ID, webhooks.DeliveryFilter{}, req.page())
	if err != nil {
		return answer{}, err
	}
	return answer{page: "webhook.html", title: w.Name, data: webhookData{w, deliveries, webhookForm{
		req.typed("name", w.Name), req.typed("url", w.URL), req.typed("events", strings.Join(w.Events, ", ")), req.ticked("enabled", "url", w.Enabled),
	}}}, cause
}

func (req *request) webhookUpdate() (answer, error) {
	name, url, enabled := req.form("name"), req.form("url"), req.checked("enabled")
	_, err := req.engine.Webhooks.Update(req.call, req.id(), webhooks.Change{Name: &name, URL: &url, Events: append([]string{}, req.typedEvents()...), Enabled: &enabled})
	return done("/webhooks/"+req.id(), "webhook_updated"), err
}

func (req *request) webhookPing() (answer, error) {
	_, err := req.engine.Webhooks.Ping(req.call, req.id())
	return done("/webhooks/"+req.id(), "webhook_pinged"), err
}

func (req *request) webhookResend() (answer, error) {
	_, err := req.engine.Webhooks.Resend(req.call, req.id(), req.r.PathValue("delivery"))
	return done("/webhooks/"+req.id(), "webhook_resent"), err
}

func (req *request) webhookDelete() (answer, error) {
	return done("/webhooks", "webhook_deleted"), req.engine.Webhooks.Delete(req.call, req.id())
}
