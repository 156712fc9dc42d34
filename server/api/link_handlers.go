package api

import (
	"cmp"
	"context"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/api/wire"
	"holdfast/server/content"
)

type createUploadLinkInput struct {
	BucketInput
	Body wire.CreateUploadLink
}

// defaultLinkLife is how long links are valid that do not say.
const defaultLinkLife = time.Hour

func linkLife(seconds *wire.WholeNumber) time.Duration {
	if seconds == nil {
		return defaultLinkLife
	}
	return time.Duration(*seconds) * time.Second
}

func (h *handlers) uploadLinkCreate(_ context.Context, call *model.Call, in *createUploadLinkInput) (wire.UploadLink, error) {
	link := objects.UploadLink{
		Method: cmp.Or(string(text(in.Body.Method)), objects.LinkByPut), Bucket: in.ID, Key: text(in.Body.Key), Prefix: text(in.Body.KeyPrefix),
		ContentType: text(in.Body.ContentType), IfAbsent: in.Body.IfAbsent != nil && *in.Body.IfAbsent,
	}
	if in.Body.MaxBytes != nil {
		link.MaxBytes = *in.Body.MaxBytes
	}
	signed, until, err := h.engine.Objects.UploadLinkCreate(call, link, linkLife(in.Body.ExpiresIn))
	if err != nil {
		return wire.UploadLink{}, err
	}
	return h.newUploadLink(link, signed, until), nil
}

func (h *handlers) newUploadLink(link objects.UploadLink, signed string, until time.Time) wire.UploadLink {
	headers, fields := map[string]string{}, map[string]string{}
	exact := link.ContentType != "" && link.ContentType[len(link.ContentType)-1] != '*'
	if link.Method == objects.LinkByPut {
		if exact {
			headers["Content-Type"] = link.ContentType
		}
	} else {
		fields["key"] = link.Key
		if link.Prefix != "" {
			fields["key"] = link.Prefix + content.FileNameVariable
		}
		if exact {
			fields["Content-Type"] = link.ContentType
		}
	}
	return wire.UploadLink{
		Method: wire.LinkMethod(link.Method), URL: h.objectsURL + link.Path(signed),
		Headers: headers, Fields: fields, ExpiresAt: utc(until),
	}
}

type createDownloadLinkInput struct {
	BucketInput
	Body wire.CreateDownloadLink
}

func (h *handlers) downloadLinkCreate(_ context.Context, call *model.Call, in *createDownloadLinkInput) (wire.DownloadLink, error) {
	path, until, err := h.engine.Objects.LinkCreate(call, objects.DownloadLink{
		Name: objects.VersionName{Bucket: in.ID, Key: in.Body.Key, Version: text(in.Body.Version)},
		Life: linkLife(in.Body.ExpiresIn), Disposition: text(in.Body.Disposition),
	})
	return wire.DownloadLink{URL: h.objectsURL + path, ExpiresAt: utc(until)}, notDeleted(err)
}
