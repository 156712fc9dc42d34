package remote

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newWebhook(s *session) *cobra.Command {
	return Group("webhook", "URLs that receive events as signed requests",
		newWebhookList(s), newWebhookCreate(s), newWebhookGet(s), newWebhookUpdate(s), newWebhookDelete(s), newWebhookRotate(s),
		newWebhookPing(s), newWebhookDeliveries(s), newWebhookResend(s))
}

func newWebhookList(s *session) *cobra.Command {
	return s.command("list", "Show the webhooks", cobra.NoArgs, func(t *task, _ []string) error {
		return list(t, t.api.Webhooks(t.ctx, client.WebhookOptions{}), "there are no webhooks",
			[]string{"ID", "NAME", "URL", "EVENTS", "STATE"}, func(w wire.Webhook) []string {
				return []string{w.ID, w.Name, w.URL, selectors(w.Events), webhookState(w)}
			})
	})
}

func selectors(events []wire.EventSelector) string {
	var texts []string
	for _, e := range events {
		texts = append(texts, string(e))
	}
	return strings.Join(texts, ",")
}

func parseSelectors(texts []string) (events []wire.EventSelector) {
	for _, text := range texts {
		events = append(events, wire.EventSelector(text))
	}
	return events
}

func webhookState(w wire.Webhook) string {
	switch {
	case w.Enabled:
		return "enabled"
	case w.DisabledReason != nil:
		return "disabled: " + *w.DisabledReason
	default:
		return "disabled"
	}
}

func webhookDetails(w io.Writer, hook wire.Webhook) { details(w, webhookFields(hook)...) }

func webhookFields(hook wire.Webhook) []string {
	return []string{
		"id", hook.ID, "name", hook.Name, "url", hook.URL, "events", selectors(hook.Events), "scopes", strings.Join(hook.Scopes, " "), "state", webhookState(hook),
		"previous secret until", formatTime(hook.PreviousUntil), "created", formatTime(&hook.CreatedAt),
	}
}

func webhookSecret(w io.Writer, hook wire.WebhookSecret) {
	details(w, append(webhookFields(hook.Webhook), "secret", hook.Secret+"  (shown only this once)")...)
}

func newWebhookCreate(s *session) *cobra.Command {
	var events []string
	cmd := s.command("create NAME URL", "Create a webhook", cobra.ExactArgs(2), func(t *task, args []string) error {
		return shows(t, webhookSecret)(t.api.CreateWebhook(t.ctx, wire.CreateWebhook{Name: args[0], URL: args[1], Events: parseSelectors(events)}))
	})
	cmd.Long = "Create a webhook: a URL that receives events as requests, signed with the secret that this command prints, as\n" +
		"Standard Webhooks (standardwebhooks.com) specifies. It receives only events that this key may see: backup and recovery\n" +
		"events need the scope backup:list, key events account:read, others database:read. These scopes stay with the webhook,\n" +
		"which goes on after the key is revoked or expires: delete it when it is no longer wanted."
	cmd.Example = "  holdfast webhook create pager https://example.com/hook --events 'backup.*,database.failed'"
	cmd.Flags().StringSliceVar(&events, "events", []string{"*"}, "what it receives: types such as backup.failed, areas such as backup.*, or * for all")
	return cmd
}

func newWebhookGet(s *session) *cobra.Command {
	cmd := s.command("get WEBHOOK", "Show a webhook", cobra.ExactArgs(1), func(t *task, args []string) error {
		return shows(t, webhookDetails)(t.webhook(args[0]))
	})
	return s.positions(cmd, webhookNames)
}

func newWebhookUpdate(s *session) *cobra.Command {
	var name, url string
	var events []string
	var enabled bool
	cmd := s.command("update WEBHOOK", "Change a webhook", cobra.ExactArgs(1), func(t *task, args []string) error {
		in, changed := wire.UpdateWebhook{Events: parseSelectors(events)}, t.cmd.Flags().Changed
		if changed("name") {
			in.Name = &name
		}
		if changed("url") {
			in.URL = &url
		}
		if changed("enabled") {
			in.Enabled = &enabled
		}
		if in.Name == nil && in.URL == nil && in.Enabled == nil && in.Events == nil {
			return usagef("say what is to change: --name, --url, --events or --enabled")
		}
		hook, err := t.webhook(args[0])
		if err != nil {
			return err
		}
		return shows(t, webhookDetails)(t.api.UpdateWebhook(t.ctx, hook.ID, in))
	})
	cmd.Flags().StringVar(&name, "name", "", "another name")
	cmd.Flags().StringVar(&url, "url", "", "another URL")
	cmd.Flags().StringSliceVar(&events, "events", nil, "what it receives from now on")
	cmd.Flags().BoolVar(&enabled, "enabled", true, "send events to it; --enabled=false sends none")
	return s.positions(cmd, webhookNames)
}

func newWebhookDelete(s *session) *cobra.Command {
	cmd := s.command("delete WEBHOOK", "Delete a webhook with its deliveries", cobra.ExactArgs(1), func(t *task, args []string) error {
		hook, err := t.webhook(args[0])
		if err != nil {
			return err
		}
		if err := t.confirm("delete the webhook %s with its deliveries", hook.Name); err != nil {
			return err
		}
		return shows(t, func(w io.Writer, _ wire.DeletedWebhook) { fmt.Fprintf(w, "the webhook %s is deleted\n", hook.Name) })(t.api.DeleteWebhook(t.ctx, hook.ID))
	})
	return s.positions(cmd, webhookNames)
}

func newWebhookRotate(s *session) *cobra.Command {
	cmd := s.command("rotate-secret WEBHOOK", "Give a webhook a new secret", cobra.ExactArgs(1), func(t *task, args []string) error {
		hook, err := t.webhook(args[0])
		if err != nil {
			return err
		}
		return shows(t, webhookSecret)(t.api.RotateWebhookSecret(t.ctx, hook.ID))
	})
	cmd.Long = "Give a webhook a new secret. For 24 hours its requests are signed with the previous one too."
	return s.positions(cmd, webhookNames)
}

func newWebhookPing(s *session) *cobra.Command {
	cmd := s.command("ping WEBHOOK", "Send a webhook a test event", cobra.ExactArgs(1), func(t *task, args []string) error {
		hook, err := t.webhook(args[0])
		if err != nil {
			return err
		}
		return shows(t, deliveryDetails)(t.api.PingWebhook(t.ctx, hook.ID))
	})
	return s.positions(cmd, webhookNames)
}

func newWebhookDeliveries(s *session) *cobra.Command {
	var status, kind string
	cmd := s.command("deliveries WEBHOOK", "Show the deliveries of a webhook", cobra.ExactArgs(1), func(t *task, args []string) error {
		hook, err := t.webhook(args[0])
		if err != nil {
			return err
		}
		return list(t, t.api.WebhookDeliveries(t.ctx, hook.ID, client.DeliveryOptions{Status: wire.DeliveryStatus(status), Type: wire.EventSelector(kind)}), "there are no such deliveries",
			[]string{"ID", "EVENT", "STATUS", "ATTEMPTS", "NEXT", "ANSWER", "CREATED"}, func(d wire.Delivery) []string {
				return []string{
					d.ID, d.Event.Type, string(d.Status), fmt.Sprint(d.Attempts), formatTime(d.NextAttemptAt), deliveryAnswer(d), Ago(&d.CreatedAt),
				}
			})
	})
	cmd.Flags().StringVar(&status, "status", "", "only those with this status: pending, delivered or failed")
	cmd.Flags().StringVar(&kind, "type", "", "only those of this event, such as backup.failed, or this area, such as 'backup.*'")
	return s.positions(cmd, webhookNames)
}

func deliveryAnswer(d wire.Delivery) string {
	switch {
	case d.LastError != nil:
		return *d.LastError
	case d.LastStatus != nil:
		return fmt.Sprint(*d.LastStatus)
	default:
		return ""
	}
}

func deliveryDetails(w io.Writer, d wire.Delivery) {
	details(w, "id", d.ID, "event", d.Event.ID, "type", d.Event.Type, "status", string(d.Status), "attempts", fmt.Sprint(d.Attempts),
		"next attempt", formatTime(d.NextAttemptAt), "answer", deliveryAnswer(d), "created", formatTime(&d.CreatedAt), "completed", formatTime(d.CompletedAt))
}

func newWebhookResend(s *session) *cobra.Command {
	cmd := s.command("resend WEBHOOK DELIVERY", "Send a delivery again", cobra.ExactArgs(2), func(t *task, args []string) error {
		hook, err := t.webhook(args[0])
		if err != nil {
			return err
		}
		return shows(t, deliveryDetails)(t.api.ResendWebhookDelivery(t.ctx, hook.ID, args[1]))
	})
	return s.positions(cmd, webhookNames)
}

// webhook returns the webhook with an id or a name.
func (t *task) webhook(given string) (wire.Webhook, error) {
	if isID(given, idWebhook) {
		return t.api.GetWebhook(t.ctx, given)
	}
	all, err := collect(t.api.Webhooks(t.ctx, client.WebhookOptions{}))
	if err != nil {
		return wire.Webhook{}, err
	}
	return pick("webhook", given, all, namedWebhook)
}

func namedWebhook(w wire.Webhook) named { return named{id: w.ID, name: w.Name, note: w.URL} }

// webhookNames yields the webhooks.
func webhookNames(t *task, _ []string, _ string) iter.Seq2[named, error] {
	return each(t.api.Webhooks(t.ctx, client.WebhookOptions{}), namedWebhook)
}
