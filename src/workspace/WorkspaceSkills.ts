/**
 * Skills with which a model works in a workspace.
 *
 * Names, inputs and texts are those that models know from their training. `docs/recipes/workspace.md` has them in one
 * table.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Layer from "effect/Layer"
import * as Hooks from "../Hooks.ts"
import * as Media from "../Media.ts"
import type { RunState } from "../RunState.ts"
import * as Skill from "../Skill.ts"
import * as Kept from "./internal/keptChanges.ts"
import * as Processes from "./internal/runProcesses.ts"
import { cutNote, numbered } from "./internal/shownText.ts"
import { type BeforeWrite, type CommandResult, Workspace, type WorkspaceShape } from "./Workspace.ts"

const path = (description: string) => Schema.String.annotate({ description })

const closed = { openWorld: false }

/**
 * Reads a file: its text with line numbers, or the medium that it is.
 *
 * @category skills
 * @since 0.1.0
 */
export const read = Skill.make("read", {
  description: "Reads a file. Text has line numbers, which are not part of the file. Images and PDFs are shown.",
  input: Schema.Struct({
    file_path: path("The file, relative to the workspace"),
    offset: Schema.optionalKey(Schema.Natural.annotate({ description: "The first line, from 1" })),
    limit: Schema.optionalKey(Schema.Natural.annotate({ description: "The number of lines; default: 2000" }))
  }),
  effects: "read",
  annotations: closed,
  execute: Effect.fnUntraced(function* ({ file_path, limit = 2_000, offset = 1 }) {
    const file = yield* (yield* Workspace).read(file_path)
    if (file._tag === "Text") return numbered(file.text, Math.max(1, offset), limit)
    const media = Media.fromBytes(file.bytes, Media.mimeTypeOf(file.path))
    return media.mimeType === "application/octet-stream"
      ? `${file.path} holds no text (${file.bytes.length} bytes)`
      : Skill.result(`${file.path}, ${media.mimeType}`, { media })
  })
})

/**
 * Writes a whole file.
 *
 * @category skills
 * @since 0.1.0
 */
export const write = Skill.make("write", {
  description: "Writes a file, which is created or replaced as a whole. Prefer edit for a file that exists.",
  input: Schema.Struct({
    file_path: path("The file, relative to the workspace"),
    content: Schema.String
  }),
  effects: "idempotent",
  annotations: closed,
  execute: ({ content, file_path }, { idempotencyKey }) =>
    changing(idempotencyKey, file_path, (workspace, keep) =>
      Effect.map(workspace.write(file_path, content, keep), ({ before, difference, path }) =>
        before === undefined ? `Created ${path}` : `Wrote ${path}\n${difference}`
      )
    )
})

/**
 * Replaces an exact text in a file.
 *
 * @category skills
 * @since 0.1.0
 */
export const edit = Skill.make("edit", {
  description:
    "Replaces an exact text in a file. The text must be in the file once, with its white space and without line numbers.",
  input: Schema.Struct({
    file_path: path("The file, relative to the workspace"),
    old_string: Schema.String.annotate({ description: "The text to replace" }),
    new_string: Schema.String.annotate({ description: "The text to put in its place" }),
    replace_all: Schema.optionalKey(Schema.Boolean.annotate({ description: "Replace it everywhere; default: false" }))
  }),
  effects: "idempotent",
  annotations: closed,
  execute: ({ file_path, new_string, old_string, replace_all }, { idempotencyKey }) =>
    changing(idempotencyKey, file_path, (workspace, keep) =>
      Effect.map(
        workspace.edit(file_path, { oldText: old_string, newText: new_string, all: replace_all }, keep),
        ({ difference, path, places }) =>
          `Edited ${path} in ${places === 1 ? "1 place" : `${places} places`}\n${difference}`
      )
    )
})

/** Runs a change of a file once, and keeps the contents of the file with the run. */
const changing = Effect.fnUntraced(function* <E>(
  key: string,
  file: string,
  change: (
    workspace: WorkspaceShape,
    keep: BeforeWrite<Effect.Error<ReturnType<typeof Kept.keep>>>
  ) => Effect.Effect<string, E>
) {
  const workspace = yield* Workspace
  const store = yield* Kept.storeOfRun
  if (store === undefined) return yield* change(workspace, () => Effect.void)
  const done = yield* Kept.written(store, workspace, key)
  if (done !== undefined) return Skill.result(`Changed ${file}`, { metadata: Kept.metadata([done]) })
  const kept: Array<Kept.KeptChange> = []
  const text = yield* change(workspace, (made) =>
    Effect.map(Kept.keep(store, key, made), (one) => {
      kept.push(one)
    })
  )
  return Skill.result(text, { metadata: Kept.metadata(kept) })
})

/**
 * Lists a folder.
 *
 * @category skills
 * @since 0.1.0
 */
export const list = Skill.make("list", {
  description: "Lists a folder. Names of folders end with a slash.",
  input: Schema.Struct({ path: Schema.optionalKey(path("The folder; default: the workspace")) }),
  effects: "read",
  annotations: closed,
  execute: Effect.fnUntraced(function* ({ path = "" }) {
    const entries = yield* (yield* Workspace).list(path)
    const names = entries.slice(0, 1_000).map(({ kind, name }) => `${name}${endings[kind]}`)
    return names.length === 0 ? "(empty)" : [...names, ...cutNote(entries.length > 1_000)].join("\n")
  })
})

const endings = { file: "", folder: "/", link: " (link)", other: " (not a file)" }

/**
 * Finds files by a glob.
 *
 * @category skills
 * @since 0.1.0
 */
export const glob = Skill.make("glob", {
  description: "Finds files by a glob such as **/*.ts. Leaves out .git and node_modules.",
  input: Schema.Struct({
    pattern: Schema.String,
    path: Schema.optionalKey(path("The folder to search in; default: the workspace"))
  }),
  effects: "read",
  annotations: closed,
  execute: Effect.fnUntraced(function* ({ path, pattern }) {
    const { isCut, items } = yield* (yield* Workspace).glob(pattern, { path, limit: 500 })
    return items.length === 0 ? "No files found" : [...items, ...cutNote(isCut)].join("\n")
  })
})

/**
 * Finds lines by a regular expression.
 *
 * @category skills
 * @since 0.1.0
 */
export const grep = Skill.make("grep", {
  description: "Finds lines of files by a regular expression. Leaves out .git and node_modules.",
  input: Schema.Struct({
    pattern: Schema.String.annotate({ description: "A regular expression without lookaround and backreferences" }),
    path: Schema.optionalKey(path("The file or folder to search in; default: the workspace")),
    glob: Schema.optionalKey(Schema.String.annotate({ description: "Search only files that match, such as *.ts" })),
    ignore_case: Schema.optionalKey(Schema.Boolean)
  }),
  effects: "read",
  annotations: closed,
  execute: Effect.fnUntraced(function* ({ glob, ignore_case, path, pattern }) {
    const options = { glob, path, ignoreCase: ignore_case, limit: 500 }
    const { isCut, items } = yield* (yield* Workspace).grep(pattern, options)
    const lines = items.map(({ line, path, text }) => `${path}:${line}:${text}`)
    return lines.length === 0 ? "No matches found" : [...lines, ...cutNote(isCut)].join("\n")
  })
})

/**
 * Runs a command, or starts one in the background.
 *
 * @category skills
 * @since 0.1.0
 */
export const shell = Skill.make("shell", {
  description:
    "Runs a bash command in the workspace and returns its output. There is no terminal and no input. A server must run in the background.",
  input: Schema.Struct({
    command: Schema.String,
    timeout: Schema.optionalKey(
      Schema.Natural.check(Schema.isBetween({ minimum: 1, maximum: 3_600_000 })).annotate({
        description: "Milliseconds; default: 120000"
      })
    ),
    run_in_background: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Return at once, with an id for process" })
    )
  }),
  effects: "write",
  timeout: "61 minutes",
  execute: Effect.fnUntraced(function* ({ command, run_in_background, timeout }, { rootRunId }) {
    const workspace = yield* Workspace
    if (run_in_background === true) return `Started ${yield* Processes.start(workspace, rootRunId, command)}`
    const limit = timeout === undefined ? {} : { timeout: Duration.millis(timeout) }
    const running = workspace.run(command, limit)
    const store = yield* Kept.storeOfRun
    if (store === undefined) return shownEnd(yield* running)
    const [end, changed] = yield* Kept.aroundCommand(store, workspace, running)
    const shown = [shownEnd(end), ...Kept.lostNote(changed)].join("\n")
    const { changes } = changed
    return changes.length === 0 ? shown : Skill.result(shown, { metadata: Kept.metadata(changes) })
  })
})

const shownEnd = ({ exitCode, output }: CommandResult): string => {
  const end = exitCode === undefined ? "ended by its timeout" : exitCode === 0 ? "" : `exit code ${exitCode}`
  return [output.trimEnd(), ...(end === "" ? [] : [`[${end}]`])].join("\n").trimStart() || "(no output)"
}

/**
 * Reads the output of a background process, or ends it.
 *
 * @category skills
 * @since 0.1.0
 */
export const process = Skill.make("process", {
  description: "Reads the output of a background process from an offset on, or stops it.",
  input: Schema.Struct({
    id: Schema.String.annotate({ description: "The id that shell returned" }),
    offset: Schema.optionalKey(Schema.Natural.annotate({ description: "In bytes; default: 0" })),
    stop: Schema.optionalKey(Schema.Boolean)
  }),
  effects: "idempotent",
  annotations: closed,
  execute: Effect.fnUntraced(function* ({ id, offset, stop }) {
    const workspace = yield* Workspace
    if (stop === true) yield* workspace.stop(id)
    const { exitCode, next, text } = yield* workspace.output(id, offset)
    const state = exitCode === undefined ? "running" : `ended with exit code ${exitCode}`
    return `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}[${state}; the next offset is ${next}]`
  })
})

/**
 * Keeps the list of what the model plans to do. Each call has the whole list, so the last one holds.
 *
 * @category skills
 * @since 0.1.0
 */
export const todo = Skill.make("todo", {
  description: "Writes the todo list of this work: all items, with one in progress. Use it for work of several steps.",
  input: Schema.Struct({
    todos: Schema.Array(
      Schema.Struct({ content: Schema.String, status: Schema.Literals(["pending", "in_progress", "completed"]) })
    ).check(Schema.isMaxLength(100))
  }),
  effects: "idempotent",
  annotations: closed,
  execute: ({ todos }) =>
    Effect.succeed(
      todos.length === 0 ? "(empty)" : todos.map(({ content, status }) => `${marks[status]} ${content}`).join("\n")
    )
})

const marks = { pending: "[ ]", in_progress: "[>]", completed: "[x]" }

/**
 * All skills of a workspace, for `SkillRegistry.layer`.
 *
 * @category skills
 * @since 0.1.0
 */
export const all = [read, write, edit, list, glob, grep, shell, process, todo] as const

// ---------------------------------------------------------------- layers

/**
 * Ends the background processes of a run and the runs below it when it completes or fails, for a workspace in which many
 * runs work. Without it, as after a run that was cancelled or interrupted, they end with the workspace.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerProcesses: Layer.Layer<never, never, Workspace> = Hooks.layer({
  onRunCompleted: ({ state }) => endOf(state),
  onRunFailed: ({ state }) => endOf(state)
})

const endOf = ({ rootRunId, runId }: RunState) =>
  runId === rootRunId ? Workspace.use((workspace) => Processes.end(workspace, rootRunId)) : Effect.void
