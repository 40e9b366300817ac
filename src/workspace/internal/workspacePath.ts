/**
 * Paths inside a workspace: `/` between the parts, relative to the root, `""` for the root itself.
 */

import * as Effect from "effect/Effect"
import { quote } from "../../kit/text.ts"
import { WorkspaceError } from "../WorkspaceError.ts"

const maxLength = 4096
const maxPart = 255

/** Resolves a path as a model or a person writes it. An absolute path must be inside the root. */
export const resolve = (root: string, given: string): Effect.Effect<string, WorkspaceError> => {
  const refuse = (reason: "invalid" | "outside", detail: string) =>
    Effect.fail(new WorkspaceError({ reason, detail: `${quote(given.slice(0, 200))} ${detail}` }))
  if (given.length > maxLength) return refuse("invalid", "is too long for a path")
  // Windows reads a backslash as a separator, and a colon as a drive or a stream.
  if (/[\p{Cc}\\]/u.test(given)) return refuse("invalid", "has characters that paths here may not have")
  const base = root.endsWith("/") ? root : `${root}/`
  const inner = given === root ? "" : given.startsWith(base) ? given.slice(base.length) : given
  if (inner.startsWith("/") || /^(?:~(?:\/|$)|[A-Za-z]:)/.test(inner)) {
    return refuse("outside", "is outside the workspace")
  }
  const parts: Array<string> = []
  for (const part of inner.split("/")) {
    if (part === "" || part === ".") continue
    if (part === "..") {
      if (parts.pop() === undefined) return refuse("outside", "is outside the workspace")
      continue
    }
    if (new TextEncoder().encode(part).length > maxPart) return refuse("invalid", "has a name that is too long")
    parts.push(part)
  }
  return Effect.succeed(parts.join("/"))
}

/** Returns the folder of a path. */
export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")))

/** Returns the last part of a path. */
export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** Joins a folder and a name. */
export const join = (folder: string, name: string): string => (folder === "" ? name : `${folder}/${name}`)

/**
 * Returns which paths may be written: those of the list and below, without a list all. Nothing of `.git` is written: Git
 * runs what its folder names, with the rights of whoever calls it next.
 */
export const writablePaths = (folders: ReadonlyArray<string> = ["."]): ((path: string) => boolean) => {
  const open = folders.map((folder) => (folder === "." ? "" : folder.replace(/^\.\/|\/$/g, "")))
  return (path) =>
    path.split("/").every((part) => part.toLowerCase() !== ".git") &&
    open.some((folder) => folder === "" || path === folder || path.startsWith(`${folder}/`))
}
