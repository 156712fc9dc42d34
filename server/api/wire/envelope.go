package wire

// Meta describes the response, not the resource.
type Meta struct {
	RequestID string `json:"request_id" doc:"Id of this request, also in the header X-Request-Id and in the audit log."`
}

// ListMeta is the Meta of a list.
type ListMeta struct {
	Meta
	NextCursor *string `json:"next_cursor" doc:"Send it as cursor to get the next page; null on the last page."`
}

// LogMeta is the Meta of a log.
type LogMeta struct {
	Meta
	HasNext bool `json:"has_next" doc:"Whether there is a next page."`
}

// Envelope wraps every successful response.
type Envelope[T, M any] struct {
	Data T `json:"data"`
	Meta M `json:"meta"`
}

// FolderMeta is the Meta of a list whose keys can be grouped into folders.
type FolderMeta struct {
	ListMeta
	CommonPrefixes []string `json:"common_prefixes" doc:"With a delimiter: the folders of this page, each ending with it."`
}

// Problem is the body of an error response.
type Problem struct {
	Code    ErrorCode `json:"code" doc:"What went wrong, for programs."`
	Message string    `json:"message" doc:"What went wrong and what would be right, for people."`
}
