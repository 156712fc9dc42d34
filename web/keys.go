package web

import (
	"cmp"
	"slices"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/s3tools"
)

// keysData is what keys.html shows.
type keysData struct {
	core.List[model.Key]
	Now time.Time
}

func (req *request) keys() (answer, error) {
	list, err := req.engine.Access.KeyList(req.call, access.KeyFilter{}, req.page())
	return answer{page: "keys.html", title: "API keys", data: keysData{list, time.Now()}}, err
}

// keyFormData is what key_new.html shows.
type keyFormData struct {
	Name    string
	Preset  model.Preset
	Presets []model.Preset
	Scopes  []model.Scope
	Chosen  map[model.Scope]bool
	Lives   []keyLife
	Life    string
	Danger  bool
}

func (req *request) keyNew(cause error) (answer, error) {
	if err := req.opens(model.ActionKeyCreate); err != nil {
		return answer{}, err
	}
	return answer{page: "key_new.html", title: "New API key", data: req.typedKey()}, cause
}

func (req *request) typedKey() keyFormData {
	form := keyFormData{
		Name: req.form("name"), Preset: cmp.Or(model.Preset(req.form("preset")), model.PresetReadOnly),
		Presets: append(model.Presets(), model.PresetCustom), Scopes: model.Scopes(), Chosen: map[model.Scope]bool{},
		Lives: keyLives(), Life: cmp.Or(req.form("expires"), defaultLife),
	}
	for _, s := range req.r.PostForm["scopes"] {
		form.Chosen[model.Scope(s)] = true
	}
	// Ignore a box that was ticked and then hidden by choosing a smaller
	// preset.
	form.Danger = req.checked("allow_dangerous") && (form.Preset == model.PresetFullAccess || form.Preset == model.PresetCustom)
	return form
}

func (req *request) keyCreate() (answer, error) {
	form := req.typedKey()
	in := access.NewKey{Name: form.Name, Preset: model.Preset(req.form("preset")), AllowDangerous: form.Danger, Source: model.KeySourceConsole}
	if form.Preset == model.PresetCustom {
		in.Preset = ""
		scopes, err := model.ParseScopes("scopes", req.r.PostForm["scopes"])
		if err == nil && len(scopes) == 0 {
			err = model.Invalid("scopes", "tick at least one permission")
		}
		if err != nil {
			return answer{}, err
		}
		in.Scopes = scopes
	}
	var err error
	if in.ExpiresIn, err = parseLife(req.form("expires")); err != nil {
		return answer{}, err
	}
	secret, key, err := req.engine.Access.KeyCreate(req.call, in)
	if err != nil {
		return answer{}, err
	}
	data := createdKey{
		Key: key, Secret: secret.Reveal(), API: req.opts.BaseURL + "/v1", Tools: s3tools.Tools(),
		S3: s3tools.Access{ID: key.ID, Secret: req.engine.Access.S3Secret(key.ID).Reveal(), URL: req.opts.S3URL, Region: model.S3Region},
	}
	return answer{page: "key_created.html", title: "API key made", data: data}, nil
}

// createdKey is what key_created.html shows, once.
type createdKey struct {
	Key    model.Key
	Secret string
	API    string
	// S3 is the key as an access key. Its URL is "" if there is no endpoint.
	S3 s3tools.Access
	// Tools are those that can be configured with it.
	Tools []s3tools.Tool
}

// Storage reports whether the key may do anything with buckets and objects.
func (d createdKey) Storage() bool { return slices.ContainsFunc(d.Key.Scopes, model.Scope.Stores) }

// key shows one key, with the confirmation for revoking it.
func (req *request) key() (answer, error) {
	key, err := req.engine.Access.KeyGet(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	return answer{page: "key.html", title: key.Name, data: keyData{key, key.Usable(time.Now()), keyLives(), req.typed("name", key.Name), req.form("expires")}}, nil
}

// keyAgain shows the key's page with the error of a form on it.
func (req *request) keyAgain(cause error) (answer, error) {
	a, err := req.key()
	return a, cmp.Or(cause, err)
}

// keyData is what key.html shows.
type keyData struct {
	model.Key
	Usable      bool
	Lives       []keyLife
	Typed, Life string // the fields of the form, as they are or were typed
}

// keyUpdate changes the key's name, and its end if the form says so.
func (req *request) keyUpdate() (answer, error) {
	name := req.form("name")
	change := access.KeyChange{Name: &name}
	if life := req.form("expires"); life != "" {
		ends, err := parseLife(life)
		if err != nil {
			return answer{}, err
		}
		change.ExpiresAt = new(time.Time)
		if ends > 0 {
			*change.ExpiresAt = time.Now().Add(ends)
		}
	}
	_, err := req.engine.Access.KeyUpdate(req.call, req.id(), change)
	return done("/keys/"+req.id(), "key_updated"), err
}

// Destroys reports whether the key has a scope that the toggle controls.
func (d keyData) Destroys() bool { return slices.ContainsFunc(d.Scopes, model.Scope.Destroys) }

// keyDangerous sets the key's toggle to the form's value.
func (req *request) keyDangerous() (answer, error) {
	id, to := req.id(), req.form("allow_dangerous")
	if to != "on" && to != "off" {
		return answer{}, model.Invalid("allow_dangerous", "must be on or off")
	}
	_, err := req.engine.Access.KeyAllowDangerous(req.call, id, to == "on")
	return done("/keys/"+id, "key_dangerous_"+to), err
}

func (req *request) keyRevoke() (answer, error) {
	_, err := req.engine.Access.KeyRevoke(req.call, req.id())
	return done("/keys", "key_revoked"), err
}
