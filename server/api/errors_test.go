package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/server/gate"
)

// answered lets act serve one request and returns the response and the log.
func answered(t *testing.T, ctx context.Context, act func(*gate.Exchange) error) (*httptest.ResponseRecorder, string) {
	t.Helper()
	w := open(t)
	log := &syncBuffer{}
	g := newGate(w.engine, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	rec := httptest.NewRecorder()
	g.Open(model.OperationFor(model.ActionDatabaseList), act).ServeHTTP(rec, httptest.NewRequest("GET", "/v1/databases", nil).WithContext(ctx))
	if id := rec.Header().Get("X-Request-Id"); id == "" || !strings.Contains(rec.Body.String(), id) {
		t.Errorf("no request id in %s", rec.Body)
	}
	return rec, log.String()
}

func TestUnclassifiedErrors(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	refused := &model.Error{Code: model.CodeForbidden, Message: "the disk is full", Err: errors.New("cause")}
	for _, test := range []struct {
		name   string
		ctx    context.Context
		err    error
		status int
		logged bool
		level  string
	}{
		{"unclassified", t.Context(), errors.New("cause"), 500, true, "level=ERROR"},
		{"classified as internal", t.Context(), &model.Error{Code: model.CodeInternal, Message: "cause"}, 500, true, "level=ERROR"},
		{"from a client that went away", gone, fmt.Errorf("cause: %w", context.Canceled), 500, false, ""},
		{"with a cause", t.Context(), fmt.Errorf("wrapped: %w", refused), 403, true, "level=WARN"},
		{"of a full disk", t.Context(), &model.Error{Code: model.CodeForbidden, Reason: model.ReasonNoSpace, Message: "full"}, 507, false, ""},
		{"of what is elsewhere", t.Context(), &model.Error{Code: model.CodeInternal, Reason: model.ReasonUnavailable, Message: "away", Err: errors.New("cause")}, 503, true, "level=WARN"},
		{"of the client", t.Context(), &model.Error{Code: model.CodeValidation, Message: "body", Err: errors.New("cause")}, 422, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec, log := answered(t, test.ctx, func(*gate.Exchange) error { return test.err })
			if rec.Code != test.status || strings.Contains(rec.Body.String(), "cause") {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
			if strings.Contains(log, "cause") != test.logged || !strings.Contains(log, test.level) {
				t.Errorf("log: %s", log)
			}
			if test.logged && !strings.Contains(log, "request_id=req_") {
				t.Errorf("no request id in the log: %s", log)
			}
		})
	}
}

func TestPanic(t *testing.T) {
	rec, log := answered(t, t.Context(), func(*gate.Exchange) error { panic("secret cause") })
	if rec.Code != http.StatusInternalServerError || strings.Contains(rec.Body.String(), "cause") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if !strings.Contains(log, "secret cause") || !strings.Contains(log, "errors_test.go") {
		t.Errorf("the log lacks the panic or its stack: %s", log)
	}
}

// TestPanicAfterAnswer checks that an incomplete response is cut off.
func TestPanicAfterAnswer(t *testing.T) {
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler {
			t.Errorf("panicked with %v", cause)
		}
	}()
	answered(t, t.Context(), func(x *gate.Exchange) error {
		writeError(x, x.Fail(errors.New("cause")))
		panic("late")
	})
}

func TestStatusOf(t *testing.T) {
	for code, want := range map[model.Code]int{
		model.CodeUnauthorized: 401, model.CodeInsufficientScope: 403, model.CodeDangerousNotAllowed: 403, model.CodeForbidden: 403,
		model.CodeNotFound: 404, model.CodeConflict: 409, model.CodeValidation: 422, model.CodeRateLimited: 429, model.CodeInternal: 500,
		model.CodeAuthorizationPending: 400, model.CodeSlowDown: 400, model.CodeAccessDenied: 400, model.CodeExpiredToken: 400,
	} {
		if got := StatusOf(code); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}
