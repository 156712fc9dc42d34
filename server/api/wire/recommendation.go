package wire

import "time"

// Recommendation is advice and how to follow it.
type Recommendation struct {
	ID         string                 `json:"id"`
	Code       string                 `json:"code"`
	Severity   RecommendationSeverity `json:"severity"`
	Category   RecommendationCategory `json:"category"`
	Title      string                 `json:"title"`
	Message    string                 `json:"message"`
	Resource   *Resource              `json:"resource"`
	Evidence   map[string]any         `json:"evidence"`
	Action     *RecommendedCall       `json:"action" doc:"The request that removes the cause."`
	SQL        *string                `json:"sql" doc:"The statement that removes the cause."`
	Caution    *string                `json:"caution"`
	DetectedAt time.Time              `json:"detected_at"`
}

// RecommendedCall is a request of this API.
type RecommendedCall struct {
	Method string         `json:"method"`
	Path   string         `json:"path"`
	Body   map[string]any `json:"body" nullable:"true"`
}
