package operator

import (
	"context"
	"encoding/json"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api"
)

// command is a row of the command table.
type command struct {
	inOrganization bool
	run            func(context.Context, Appliance, *model.Call, json.RawMessage) (any, error)
}

// commands returns the table of the operator's commands.
func commands() map[model.Action]command {
	return map[model.Action]command{
		model.ActionKeyCreate:          in(keyCreate),
		model.ActionKeyList:            in(keyList),
		model.ActionKeyDangerous:       in(keyDangerous),
		model.ActionKeyRevoke:          in(keyRevoke),
		model.ActionOrganizationCreate: overall(organizationCreate),
		model.ActionOrganizationList:   overall(organizationList),
		model.ActionPlanSet:            in(planSet),
		model.ActionTrialSet:           in(trialSet),
		model.ActionProjectCreate:      in(projectCreate),
		model.ActionProjectList:        in(projectList),
		model.ActionUserCreate:         in(userCreate),
		model.ActionUserList:           in(userList),
		model.ActionUserRole:           in(userRole),
		model.ActionUserDelete:         in(userDelete),
		model.ActionSessionEndAll:      in(userSignOut),
		model.ActionSetupLinkCreate:    in(setupLinkCreate),
		model.ActionTrashList:          in(trashList),
		model.ActionTrashRestore:       in(trashRestore),
		model.ActionTrashEmpty:         in(trashEmpty),
		model.ActionTrashBucketList:    in(trashBucketList),
		model.ActionTrashBucketRestore: in(trashBucketRestore),
		model.ActionTrashObjectList:    in(trashObjectList),
		model.ActionTrashObjectRestore: in(trashObjectRestore),
		model.ActionAuditVerify:        in(auditVerify),
		model.ActionAuditExport:        in(auditExport),
		model.ActionDatabaseSettings:   in(databaseSettings),
		model.ActionMetadataBackup:     overall(metadataBackup),
	}
}

// in returns the row of a command about one organization.
func in[A any](run func(context.Context, Appliance, *model.Call, A) (any, error)) command {
	c := overall(run)
	c.inOrganization = true
	return c
}

// overall returns the row of a command about the appliance.
func overall[A any](run func(context.Context, Appliance, *model.Call, A) (any, error)) command {
	return command{run: func(ctx context.Context, a Appliance, call *model.Call, text json.RawMessage) (any, error) {
		var arguments A
		if err := decodeArguments(text, &arguments); err != nil {
			return nil, err
		}
		return run(ctx, a, call, arguments)
	}}
}

// NewKey are the arguments of key.create.
type NewKey struct {
	Name           string        `json:"name"`
	Preset         string        `json:"preset"`
	Scopes         []string      `json:"scopes"`
	AllowDangerous bool          `json:"allow_dangerous"`
	ExpiresIn      time.Duration `json:"expires_in"` // nanoseconds, 0 = never
}

func keyCreate(_ context.Context, a Appliance, call *model.Call, in NewKey) (any, error) {
	scopes, err := model.ParseScopes("scopes", in.Scopes)
	if err != nil {
		return nil, err
	}
	secret, key, err := a.Access.KeyCreate(call, access.NewKey{
		Name: in.Name, Preset: model.Preset(in.Preset), Scopes: scopes, AllowDangerous: in.AllowDangerous,
		ExpiresIn: in.ExpiresIn, Source: model.KeySourceOperator,
	})
	return CreatedKey{APIKey: secret.Reveal(), Key: api.NewKey(key)}, err
}

func keyList(_ context.Context, a Appliance, call *model.Call, _ struct{}) (any, error) {
	return everything(call, a.Access.KeyList, api.NewKey)
}

func keyDangerous(_ context.Context, a Appliance, call *model.Call, in KeyDangerous) (any, error) {
	key, err := a.Access.KeyAllowDangerous(call, in.ID, in.AllowDangerous)
	return api.NewKey(key), err
}

func keyRevoke(_ context.Context, a Appliance, call *model.Call, in Target) (any, error) {
	key, err := a.Access.KeyRevoke(call, in.ID)
	return api.NewKey(key), err
}

func organizationCreate(_ context.Context, a Appliance, call *model.Call, in Named) (any, error) {
	org, err := a.Access.OrganizationCreate(call, in.Name)
	return viewOrganization(org), err
}

func organizationList(_ context.Context, a Appliance, _ *model.Call, _ struct{}) (any, error) {
	all, err := a.Access.OrganizationList()
	return views(all, viewOrganization), err
}

func projectCreate(_ context.Context, a Appliance, call *model.Call, in Named) (any, error) {
	return a.Access.ProjectCreate(call, in.Name)
}

func projectList(_ context.Context, a Appliance, call *model.Call, _ struct{}) (any, error) {
	return everything(call, a.Access.ProjectList, func(p model.Project) model.Project { return p })
}

// NewUser are the arguments of user.create.
type NewUser struct {
	Email    string `json:"email"`
	Role     string `json:"role"`
	Password string `json:"password"`
}

func userCreate(_ context.Context, a Appliance, call *model.Call, in NewUser) (any, error) {
	user, err := a.Access.UserCreate(call, access.NewUser{
		Email: in.Email, Role: model.Role(in.Role), Password: model.NewSecret(in.Password),
	})
	return viewUser(user), err
}

func userList(_ context.Context, a Appliance, call *model.Call, _ struct{}) (any, error) {
	return everything(call, a.Access.UserList, viewUser)
}

// NewRole are the arguments of user.role.
type NewRole struct {
	User string `json:"user"` // id or e-mail address
	Role string `json:"role"`
}

func userRole(_ context.Context, a Appliance, call *model.Call, in NewRole) (any, error) {
	return a.person(call, in.User, func(id string) (model.User, error) { return a.Access.UserRole(call, id, model.Role(in.Role)) })
}

func userDelete(_ context.Context, a Appliance, call *model.Call, in Target) (any, error) {
	return a.person(call, in.ID, func(id string) (model.User, error) { return a.Access.UserDelete(call, id) })
}

func userSignOut(_ context.Context, a Appliance, call *model.Call, in Target) (any, error) {
	return a.person(call, in.ID, func(id string) (model.User, error) {
		user, _, err := a.Access.UserSignOut(call, id)
		return user, err
	})
}

// person calls do with the id of the person with the given id or e-mail address.
func (a Appliance) person(call *model.Call, idOrEmail string, do func(id string) (model.User, error)) (User, error) {
	id, err := a.Access.UserID(call, idOrEmail)
	if err != nil {
		return User{}, err
	}
	user, err := do(id)
	return viewUser(user), err
}

// NewSetupLink are the arguments of user.setup_link.
type NewSetupLink struct {
	// User is the id or e-mail address of the person who will set a new password; "" creates a new owner's account.
	User string `json:"user"`
}

func setupLinkCreate(_ context.Context, a Appliance, call *model.Call, in NewSetupLink) (any, error) {
	id := ""
	if in.User != "" {
		var err error
		if id, err = a.Access.UserID(call, in.User); err != nil {
			return nil, err
		}
	}
	link, err := a.Access.SetupLinkCreate(call, id)
	return SetupLink{URL: a.BaseURL + access.SetupPath(link.Token), ExpiresAt: link.ExpiresAt}, err
}

func trashList(_ context.Context, a Appliance, call *model.Call, _ struct{}) (any, error) {
	return everything(call, a.Databases.TrashList, viewTrash)
}

func trashRestore(ctx context.Context, a Appliance, call *model.Call, in Target) (any, error) {
	db, err := a.Databases.TrashRestore(ctx, call, in.ID)
	return viewTrash(db), err
}

func trashEmpty(_ context.Context, a Appliance, call *model.Call, _ struct{}) (any, error) {
	if err := a.Core.Meta.ReleaseReserve(); err != nil { // this is the remedy for a full disk
		return nil, core.ExplainDiskFull(err)
	}
	removed, err := a.TrashEmpty(call)
	return Removed(removed), err
}

func trashBucketList(_ context.Context, a Appliance, call *model.Call, _ struct{}) (any, error) {
	return everything(call, a.Objects.TrashBucketList, viewTrashedBucket)
}

func trashBucketRestore(ctx context.Context, a Appliance, call *model.Call, in Target) (any, error) {
	b, err := a.Objects.TrashBucketRestore(ctx, call, in.ID)
	return RestoredBucket{viewTrashedBucket(model.TrashedBucket{Bucket: b.Bucket}), b.ExpiryOff}, err
}

func trashObjectList(_ context.Context, a Appliance, call *model.Call, _ struct{}) (any, error) {
	return everything(call, a.Objects.TrashObjectList, viewTrashedObject)
}

func trashObjectRestore(ctx context.Context, a Appliance, call *model.Call, in Target) (any, error) {
	object, err := a.Objects.TrashObjectRestore(ctx, call, in.ID)
	return viewTrashedObject(model.TrashedObject{Object: object}), err
}

// Settings are the arguments and the result of database.settings: PostgreSQL's names and values, "" to restore the
// default for the machine.
type Settings struct {
	Database string            `json:"database"` // id or name
	Settings map[string]string `json:"settings"`
}

func databaseSettings(ctx context.Context, a Appliance, call *model.Call, in Settings) (any, error) {
	id, err := a.Databases.ID(call, in.Database)
	if err != nil {
		return nil, err
	}
	db, err := a.Databases.ChangeSettings(ctx, call, id, in.Settings)
	return Settings{Database: db.ID, Settings: db.Settings}, err
}

// everything returns all pages of a list, without a filter.
func everything[F, T, V any](call *model.Call, list func(*model.Call, F, core.Page) (core.List[T], error), view func(T) V) (any, error) {
	var none F
	all := []V{}
	page := core.Page{Limit: core.MaxLimit}
	for {
		part, err := list(call, none, page)
		if err != nil {
			return nil, err
		}
		all = append(all, views(part.Items, view)...)
		if part.Next == "" {
			return all, nil
		}
		page.Cursor = part.Next
	}
}

func metadataBackup(_ context.Context, a Appliance, call *model.Call, _ struct{}) (any, error) {
	made, err := a.Core.MetadataBackup(call)
	return MetadataBackup{Path: made.Path, SizeBytes: made.SizeBytes}, err
}
