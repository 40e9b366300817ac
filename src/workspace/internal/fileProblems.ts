/**
 * The errors that every backend gives for a path.
 */

import { quote } from "../../kit/text.ts"
import { WorkspaceError } from "../WorkspaceError.ts"

const make = (reason: WorkspaceError["reason"], path: string, detail: string) =>
  new WorkspaceError({ reason, detail: `${quote(path === "" ? "." : path.slice(0, 400))} ${detail}` })

export const absent = (path: string) => make("not_found", path, "does not exist")

export const notFile = (path: string) => make("not_a_file", path, "is not a plain file")

export const notFolder = (path: string) => make("not_a_folder", path, "is not a folder")

export const outside = (path: string) => make("outside", path, "leads out of the workspace")

export const readOnly = (path: string) => make("read_only", path, "may not be written")

export const tooLarge = (path: string, maxBytes: number) => make("too_large", path, `is larger than ${maxBytes} bytes`)

export const failed = (path: string, detail: string) => make("io", path, `cannot be used: ${detail}`)
