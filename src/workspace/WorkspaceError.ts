/**
 * The error of workspaces.
 *
 * @since 0.1.0
 */

import * as Data from "effect/Data"

/**
 * Fails when a workspace cannot do something. The detail is a sentence for a model, without host paths outside the root.
 *
 * - `outside`: the path leads out of the root. `invalid`: a path, pattern or option is malformed.
 * - `not_found`: there is no such file or process. `not_a_file`, `not_a_folder`: it is something else.
 * - `too_large`: the file is larger than the limit. `binary`: the file holds no text.
 * - `no_match`, `many_matches`: the text to replace is not in the file, or not only once.
 * - `changed`: the file changed in the meantime. `read_only`: the path may not be written.
 * - `unavailable`: commands or a program they need are not available here. `busy`: too many processes run.
 * - `io`: the file system or the process failed.
 *
 * @category errors
 * @since 0.1.0
 */
export class WorkspaceError extends Data.TaggedError("WorkspaceError")<{
  readonly reason:
    | "outside"
    | "invalid"
    | "not_found"
    | "not_a_file"
    | "not_a_folder"
    | "too_large"
    | "binary"
    | "no_match"
    | "many_matches"
    | "changed"
    | "read_only"
    | "unavailable"
    | "busy"
    | "io"
  readonly detail: string
}> {
  override get message() {
    return this.detail
  }
}
