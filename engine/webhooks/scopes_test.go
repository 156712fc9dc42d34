package webhooks

import (
	"slices"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// TestScopes: a webhook receives what its maker may see, whoever changes it later, and no caller gets more by it than
// without it.
func TestScopes(t *testing.T) {
	to := newReceiver(t)
	r := openRoom(t, private())
	by := func(scopes ...model.Scope) *model.Call {
		call := r.call(model.ActionWebhookCreate)
		call.Actor, call.Key = model.Actor{Type: model.ActorKey, ID: "key_1"}, &model.Key{ID: "key_1", Scopes: append(scopes, model.ScopeWebhookManage)}
		return call
	}
	backups, full := func() *model.Call { return by(model.ScopeBackupList) }, func() *model.Call { return by(model.Scopes()...) }
	if _, _, err := r.Create(backups(), NewWebhook{Name: "hook", URL: to.URL, Events: []string{"backup.*", "key.*"}}); model.CodeOf(err) != model.CodeInsufficientScope {
		t.Errorf("selected what the key may not see: %v", err)
	}
	w, _, err := r.Create(backups(), NewWebhook{Name: "hook", URL: to.URL, Events: []string{"*"}})
	if err != nil || !slices.Equal(w.Scopes, []model.Scope{model.ScopeBackupList}) {
		t.Fatalf("%v, %v", w.Scopes, err)
	}
	enabled, name, url := true, "renamed", to.URL+"/mine"
	for what, step := range map[string]struct {
		call   *model.Call
		change Change
		want   model.Code
	}{
		"another may select what the maker may not see": {full(), Change{Events: []string{"key.*"}}, model.CodeValidation},
		"another may select less":                       {full(), Change{Events: []string{"backup.failed", "*"}}, ""},
		"another URL by a key that sees less":           {by(), Change{URL: &url}, model.CodeInsufficientScope},
		"other events by a key that sees less":          {by(), Change{Events: []string{"backup.*"}}, model.CodeInsufficientScope},
		"another name by a key that sees less":          {by(), Change{Name: &name, Enabled: &enabled}, ""},
	} {
		changed, err := r.Update(step.call, w.ID, step.change)
		if model.CodeOf(err) != step.want {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil && !slices.Equal(changed.Scopes, w.Scopes) {
			t.Errorf("%s: the scopes are %v", what, changed.Scopes)
		}
	}
	r.happen("org_1", model.EventKeyCreated)
	r.happen("org_1", model.EventDatabaseFailed)
	r.happen("org_1", model.EventBackupFailed)
	to.await(t, "the event", 1)
	d := r.await(w, "the delivery's record", func(d model.Delivery) bool { return d.Status == model.DeliveryDelivered })
	if all := r.deliveries(w); len(all) != 1 || d.Event.Type != model.EventBackupFailed {
		t.Errorf("%d deliveries, one of %s", len(all), d.Event.Type)
	}
	for n, call := range []*model.Call{by(), backups()} {
		call.Operation.Action = model.ActionWebhookDeliveries
		list, err := r.Deliveries(call, w.ID, DeliveryFilter{}, core.Page{Limit: core.MaxLimit})
		if err != nil || len(list.Items) != n {
			t.Errorf("%d: %d deliveries, %v", n, len(list.Items), err)
		}
	}
	if _, err := r.Resend(by(), w.ID, d.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("sent again, and shown, to who may not see it: %v", err)
	}
	testenv.Eventually(t, "another attempt", func() bool {
		_, err := r.Resend(backups(), w.ID, d.ID)
		return err == nil && to.asked.Load() > 1
	})
}
