/** Folds the updates of a task from an agent of another service into its state and results. Pure. */

import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { isJsonObject } from "../../kit/json.ts"
import { kindOf } from "../../Media.ts"
import { overhead, type Piece, piecesOf, type Task, type Update } from "./a2aWire.ts"

/** The state of a task. */
export type TaskState = (typeof states)[number]

const states = [
  "submitted",
  "working",
  "input_required",
  "auth_required",
  "completed",
  "failed",
  "cancelled",
  "rejected"
] as const

/** A task as received so far. A reply without a task counts as a completed task without an id. */
export interface View {
  readonly taskId: string | undefined
  readonly contextId: string | undefined
  readonly state: TaskState
  /** The message about the state. */
  readonly said: ReadonlyArray<Piece>
  /** Artifacts by id, in the order in which they began. */
  readonly artifacts: ReadonlyMap<string, ReadonlyArray<Piece>>
}

/** The view before the first update. */
export const unknown: View = {
  taskId: undefined,
  contextId: undefined,
  state: "submitted",
  said: [],
  artifacts: new Map()
}

/** Returns true if the task does not progress by itself. */
export const isAtRest = ({ state }: View): boolean => state !== "submitted" && state !== "working"

/** Returns the view after an update. An update about another task changes nothing. */
export const advance = (view: View, { artifactUpdate, message, statusUpdate, task }: Update): View => {
  if (task) return isForeign(view, task.id) ? view : ofTask(task)
  if (message) {
    return {
      ...view,
      contextId: message.contextId ?? view.contextId,
      state: "completed",
      said: piecesOf(message.parts)
    }
  }
  if (statusUpdate) {
    const { contextId, status, taskId } = statusUpdate
    if (isForeign(view, taskId)) return view
    return {
      ...view,
      taskId,
      contextId: contextId ?? view.contextId,
      state: stateOf(status.state),
      said: piecesOf(status.message?.parts)
    }
  }
  if (!artifactUpdate || isForeign(view, artifactUpdate.taskId)) return view
  const { append, artifact, contextId, taskId } = artifactUpdate
  const before = view.artifacts.get(artifact.artifactId) ?? []
  const added = grown(artifact.parts)
  const pieces = append === true ? joined(before, added) : added
  const artifacts = new Map(view.artifacts).set(artifact.artifactId, pieces)
  return { ...view, taskId, contextId: contextId ?? view.contextId, artifacts }
}

/** Returns the view of a whole task. */
export const ofTask = ({ artifacts, contextId, id, status }: typeof Task.Type): View => ({
  taskId: id,
  contextId: contextId ?? undefined,
  state: stateOf(status.state),
  said: piecesOf(status.message?.parts),
  artifacts: new Map((artifacts ?? []).map(({ artifactId, parts }) => [artifactId, grown(parts)]))
})

/** Returns the approximate size of a view in UTF-16 units. */
export const sizeOf = ({ artifacts, said }: View): number => {
  let size = overhead * artifacts.size
  for (const { size: own } of said) size += own
  for (const pieces of artifacts.values()) for (const { size: own } of pieces) size += own
  return size
}

const isForeign = ({ taskId }: View, id: string): boolean => taskId !== undefined && taskId !== id

/** Returns a state by its name in either version. An unknown state counts as `working`. */
const stateOf = (written: string): TaskState => {
  const word = written
    .replace(/^TASK_STATE_/, "")
    .toLowerCase()
    .replaceAll("-", "_")
  return states.find((state) => state === (word === "canceled" ? "cancelled" : word)) ?? "working"
}

/** Returns the pieces of an artifact. Consecutive texts are joined, since an artifact may have grown by its parts. */
const grown = (parts: Parameters<typeof piecesOf>[0]): ReadonlyArray<Piece> => joined([], piecesOf(parts))

/** Appends pieces. A text continues the text before it. */
const joined = (before: ReadonlyArray<Piece>, added: ReadonlyArray<Piece>): ReadonlyArray<Piece> => {
  const pieces = [...before]
  for (const piece of added) {
    const last = pieces.at(-1)
    if (last?.type !== "text" || piece.type !== "text") pieces.push(piece)
    else {
      const { length } = piece.text
      pieces[pieces.length - 1] = { type: "text", text: last.text + piece.text, size: last.size + length }
    }
  }
  return pieces
}

// ---------------------------------------------------------------- results

/** Returns the results of a task: its artifacts, or the agent's message if there are none. */
export const madeBy = ({ artifacts, said }: View): ReadonlyArray<Content> => {
  const made = [...artifacts.values()].flat()
  return contentsOf(made.length === 0 ? said : made)
}

/** Returns pieces as contents. An address is shown and never fetched. */
export const contentsOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Content> =>
  pieces.map((piece, index) => {
    const content = contentOf(piece)
    // A kernel joins texts without a separator.
    return content.type === "text" && index < pieces.length - 1 && !content.text.endsWith("\n")
      ? Contents.text(`${content.text}\n`)
      : content
  })

const contentOf = (piece: Piece): Content => {
  switch (piece.type) {
    case "text":
      return Contents.text(piece.text)
    case "data":
      return isJsonObject(piece.data) ? Contents.data(piece.data) : Contents.text(JSON.stringify(piece.data))
    case "link":
      return Contents.text(`[${piece.name === "" ? "file" : piece.name}: ${piece.url}]`)
    case "file": {
      const bytes = Result.getOrUndefined(Base64.decode(piece.bytes))
      return bytes === undefined
        ? Contents.text(`[file ${piece.name}: it cannot be read]`)
        : Contents[kindOf(piece.mediaType)]({ data: bytes, mediaType: piece.mediaType })
    }
  }
}

/** Returns contents as one text, with a line for each medium. */
export const textOf = (content: ReadonlyArray<Content>): string =>
  content.map((part) => (Contents.isMedia(part) ? Contents.placeholder(part) : Contents.toText(part))).join("")
