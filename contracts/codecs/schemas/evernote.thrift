/** The part of Evernote's services that the case study calls: accounts, shared notebooks, search. Names and numbers are Evernote's. */
namespace * evernote

typedef string Guid
typedef i32 UserID
/** Milliseconds since 1970. */
typedef i64 Timestamp

enum EDAMErrorCode {
  UNKNOWN = 1,
  BAD_DATA_FORMAT = 2,
  PERMISSION_DENIED = 3,
  INTERNAL_ERROR = 4,
  DATA_REQUIRED = 5,
  LIMIT_REACHED = 6,
  QUOTA_REACHED = 7,
  INVALID_AUTH = 8,
  AUTH_EXPIRED = 9
}

/** The caller's mistake. */
exception EDAMUserException {
  1: required EDAMErrorCode errorCode,
  2: optional string parameter
}

/** The service's own failure. */
exception EDAMSystemException {
  1: required EDAMErrorCode errorCode,
  2: optional string message,
  3: optional i32 rateLimitDuration
}

/** What was asked for is not there. */
exception EDAMNotFoundException {
  1: optional string identifier,
  2: optional string key
}

struct User {
  1: optional UserID id,
  2: optional string username,
  3: optional string email,
  4: optional string name
}

struct LinkedNotebook {
  2: optional string shareName,
  3: optional string username,
  4: optional string shardId,
  5: optional string shareKey,
  6: optional string uri,
  7: optional Guid guid,
  8: optional i32 updateSequenceNum,
  9: optional string noteStoreUrl,
  10: optional string webApiUrlPrefix,
  11: optional string stack,
  12: optional i32 businessId
}

struct SharedNotebook {
  1: optional i64 id,
  2: optional UserID userId,
  3: optional Guid notebookGuid,
  4: optional string email,
  5: optional bool notebookModifiable,
  6: optional bool requireLogin,
  7: optional Timestamp serviceCreated,
  8: optional string shareKey,
  9: optional string username,
  10: optional Timestamp serviceUpdated,
  11: optional i32 privilege,
  12: optional bool allowPreview
}

struct AuthenticationResult {
  1: required Timestamp currentTime,
  2: required string authenticationToken,
  3: required Timestamp expiration,
  4: optional User user,
  6: optional string noteStoreUrl,
  7: optional string webApiUrlPrefix,
  8: optional bool secondFactorRequired,
  9: optional string secondFactorDeliveryHint
}

struct Notebook {
  1: optional Guid guid,
  2: optional string name,
  5: optional i32 updateSequenceNum,
  6: optional bool defaultNotebook
}

struct NoteFilter {
  1: optional i32 order,
  2: optional bool ascending,
  3: optional string words,
  4: optional Guid notebookGuid,
  5: optional list<Guid> tagGuids,
  6: optional string timeZone,
  7: optional bool inactive,
  8: optional string emphasized
}

struct Resource {
  1: optional Guid guid,
  2: optional Guid noteGuid,
  4: optional string mime
}

struct Note {
  1: optional Guid guid,
  2: optional string title,
  3: optional string content,
  4: optional binary contentHash,
  5: optional i32 contentLength,
  6: optional Timestamp created,
  7: optional Timestamp updated,
  8: optional Timestamp deleted,
  9: optional bool active,
  10: optional i32 updateSequenceNum,
  11: optional Guid notebookGuid,
  12: optional list<Guid> tagGuids,
  13: optional list<Resource> resources,
  15: optional list<string> tagNames
}

struct NoteList {
  1: required i32 startIndex,
  2: required i32 totalNotes,
  3: required list<Note> notes,
  4: optional list<string> stoppedWords,
  5: optional list<string> searchedWords,
  6: optional i32 updateCount
}

service UserStore {
  /** Where the notes of the token's user are kept. */
  string getNoteStoreUrl(1: string authenticationToken)
    throws (1: EDAMUserException userException, 2: EDAMSystemException systemException),

  User getUser(1: string authenticationToken)
    throws (1: EDAMUserException userException, 2: EDAMSystemException systemException)
}

service NoteStore {
  list<Notebook> listNotebooks(1: string authenticationToken)
    throws (1: EDAMUserException userException, 2: EDAMSystemException systemException),

  list<LinkedNotebook> listLinkedNotebooks(1: string authenticationToken)
    throws (1: EDAMUserException userException, 2: EDAMNotFoundException notFoundException, 3: EDAMSystemException systemException),

  AuthenticationResult authenticateToSharedNotebook(1: string shareKey, 2: string authenticationToken)
    throws (1: EDAMUserException userException, 2: EDAMNotFoundException notFoundException, 3: EDAMSystemException systemException),

  SharedNotebook getSharedNotebookByAuth(1: string authenticationToken)
    throws (1: EDAMUserException userException, 2: EDAMNotFoundException notFoundException, 3: EDAMSystemException systemException),

  /** At most `maxNotes` of the notes that the filter lets through, from the `offset`th on; `totalNotes` counts all of them. */
  NoteList findNotes(1: string authenticationToken, 2: NoteFilter filter, 3: i32 offset, 4: i32 maxNotes)
    throws (1: EDAMUserException userException, 2: EDAMSystemException systemException, 3: EDAMNotFoundException notFoundException)
}
