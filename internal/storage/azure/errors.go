package azure

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// codes holds what the service says more exactly than by its status.
var codes = map[bloberror.Code]storage.Code{
	bloberror.BlobNotFound:             storage.CodeKeyNotFound,
	bloberror.ContainerNotFound:        storage.CodeBucketNotFound,
	bloberror.ContainerBeingDeleted:    storage.CodeBucketNotFound,
	bloberror.ContainerDisabled:        storage.CodeBucketNotFound,
	bloberror.ConditionNotMet:          storage.CodePreconditionFailed,
	bloberror.TargetConditionNotMet:    storage.CodePreconditionFailed,
	bloberror.BlobAlreadyExists:        storage.CodePreconditionFailed,
	bloberror.InvalidRange:             storage.CodeInvalidRange,
	bloberror.InvalidResourceName:      storage.CodeInvalidKey,
	bloberror.InvalidURI:               storage.CodeInvalidKey,
	bloberror.AuthenticationFailed:     storage.CodeAccessDenied,
	bloberror.AuthorizationFailure:     storage.CodeAccessDenied,
	bloberror.AccountIsDisabled:        storage.CodeAccessDenied,
	bloberror.ServerBusy:               storage.CodeThrottled,
	bloberror.RequestBodyTooLarge:      storage.CodeTooLarge,
	bloberror.MD5Mismatch:              storage.CodeUnavailable, // what came was not what was sent
	bloberror.InvalidBlockList:         storage.CodeUnavailable, // another write to the key came in between
	bloberror.LeaseIDMissing:           storage.CodeRejected,
	bloberror.InvalidBlobType:          storage.CodeRejected,
	bloberror.SnapshotsPresent:         storage.CodeRejected,
	bloberror.BlobImmutableDueToPolicy: storage.CodeRejected,
	bloberror.BlobArchived:             storage.CodeRejected,
	bloberror.OperationTimedOut:        storage.CodeUnavailable,
}

// failed is the error of a request that the SDK returned err for. content is
// that of a write, nil for a read.
func (s *Storage) failed(ctx context.Context, op, key string, err error, content *wire.Content) error {
	var answer *azcore.ResponseError
	var identity *azidentity.AuthenticationFailedError
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &identity):
		return storage.Errorf(storage.CodeAccessDenied, op, "the identity service gave no token").WithCause(err)
	case errors.As(err, &answer):
		header := http.Header{}
		if answer.RawResponse != nil {
			header = answer.RawResponse.Header
		}
		code, known := codes[bloberror.Code(answer.ErrorCode)]
		if !known {
			code = wire.CodeOfStatus(answer.StatusCode, true)
		}
		if code == storage.CodeAccessDenied && !s.expires.IsZero() && time.Now().After(s.expires) {
			code = storage.CodeCredentialExpired
		}
		return wire.Answered(code, op, key, answer.StatusCode, header, answer.ErrorCode)
	case storage.CodeOf(err) != "":
		return err
	}
	return wire.Unanswered(ctx, op, key, err, content != nil && content.Sent())
}
