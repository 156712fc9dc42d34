package api

import (
	"context"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// Recommendation is advice, and how to follow it.
type Recommendation struct {
	ID         string           `json:"id"`
	Code       string           `json:"code"`
	Severity   model.Severity   `json:"severity"`
	Category   model.Category   `json:"category"`
	Title      string           `json:"title"`
	Message    string           `json:"message"`
	Resource   *Resource        `json:"resource"`
	Evidence   map[string]any   `json:"evidence"`
	Action     *RecommendedCall `json:"action" doc:"The request that removes the cause."`
	SQL        *string          `json:"sql" doc:"The statement that removes the cause."`
	Caution    *string          `json:"caution"`
	DetectedAt time.Time        `json:"detected_at"`
}

// RecommendedCall is a request of this API.
type RecommendedCall struct {
	Method string         `json:"method"`
	Path   string         `json:"path"`
	Body   map[string]any `json:"body" nullable:"true"`
}

// NewRecommendation returns the wire form of a recommendation.
func NewRecommendation(r model.Recommendation) Recommendation {
	view := Recommendation{
		ID: r.ID(), Code: r.Code, Severity: r.Severity, Category: r.Category, Title: r.Title, Message: r.Message,
		Resource: NewResource(r.Resource), Evidence: newEvidence(r.Evidence), SQL: orAbsent(r.SQL), Caution: orAbsent(r.Caution), DetectedAt: utc(r.DetectedAt),
	}
	if r.Action != nil {
		view.Action = &RecommendedCall{Method: r.Action.Method, Path: r.Action.Path, Body: r.Action.Body}
	}
	return view
}

// newEvidence returns the figures with their times as the API writes them. It is
// never nil.
func newEvidence(figures map[string]any) map[string]any {
	view := make(map[string]any, len(figures))
	for name, figure := range figures {
		switch at := figure.(type) {
		case time.Time:
			view[name] = utc(at)
		case *time.Time:
			view[name] = utcOrAbsent(at)
		default:
			view[name] = figure
		}
	}
	return view
}

func (h *handlers) recommendationList(_ context.Context, call *model.Call, in *PageInput) (core.List[Recommendation], error) {
	list, err := h.engine.Insight.RecommendationList(call, in.page())
	return convertList(list, NewRecommendation), err
}
