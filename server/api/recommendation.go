package api

import (
	"context"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/insight"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewRecommendation returns the wire form of a recommendation.
func NewRecommendation(r model.Recommendation) wire.Recommendation {
	view := wire.Recommendation{
		ID: r.ID(), Code: r.Code, Severity: wire.RecommendationSeverity(r.Severity), Category: wire.RecommendationCategory(r.Category), Title: r.Title, Message: r.Message,
		Resource: NewResource(r.Resource), Evidence: newEvidence(r.Evidence), SQL: orAbsent(r.SQL), Caution: orAbsent(r.Caution), DetectedAt: utc(r.DetectedAt),
	}
	if r.Action != nil {
		view.Action = &wire.RecommendedCall{Method: r.Action.Method, Path: r.Action.Path, Body: r.Action.Body}
	}
	return view
}

// newEvidence returns the figures with their times in wire form. The result is never nil.
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

type recommendationListInput struct {
	PageInput
	Severity wire.RecommendationSeverity `query:"severity" doc:"Only those of this severity."`
	Category wire.RecommendationCategory `query:"category" doc:"Only those of this category."`
	Code     string                      `query:"code" minLength:"1" maxLength:"64" doc:"Only those with this code."`
}

func (h *handlers) recommendationList(_ context.Context, call *model.Call, in *recommendationListInput) (core.List[wire.Recommendation], error) {
	filter := insight.RecommendationFilter{Severity: model.Severity(in.Severity), Category: model.Category(in.Category), Code: in.Code}
	list, err := h.engine.Insight.RecommendationList(call, filter, in.page())
	return convertList(list, NewRecommendation), err
}
