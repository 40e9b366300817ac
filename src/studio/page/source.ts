/** The source of the page's data: a server, or the exported file that contains the page. */

import type { Info } from "../internal/studioInfo.ts"
import type { OpenQuestion, RunRecord } from "../../RunState.ts"
import type { CountRange } from "../../RunStore.ts"
import type { Group, Need } from "../../Operations.ts"
import type { Drain, Process, Target } from "../../Processes.ts"
import type { Fork } from "../internal/forkEdits.ts"
import type { ChatRun } from "../internal/guestRun.ts"
import type { Experiment, ExperimentReport } from "../internal/experiments.ts"
import type { DataSet, NewRow, NewScore, Score } from "../internal/keptLines.ts"
import type { MatrixReport } from "../internal/matrixReports.ts"
import type { ConversationPage } from "../internal/ownChats.ts"
import type { Overview } from "../internal/studioOverview.ts"
import type { WaitingChange } from "../internal/waitingFeed.ts"
import type { WaitingQuestion, ListQuery, Records, RunPage } from "../internal/studioData.ts"
import { person } from "./person.ts"

/** The records of a run after a revision. */
export interface Part extends Omit<Records, "records"> {
  readonly records: ReadonlyArray<RunRecord>
}

export type Decision =
  | {
      readonly callId: string
      readonly approved: boolean
      readonly reason?: string
      readonly input?: unknown
      readonly values?: unknown
    }
  | { readonly callId: string; readonly output: unknown }

/** The runs of an agent, of a version of it, or of a tenant. */
export interface RunsOf {
  readonly agent?: string
  readonly version?: string
  readonly tenant?: string
}

/** Runs to delete: those whose last change is older than a time. */
export interface Old extends Pick<RunsOf, "agent" | "tenant"> {
  readonly status: ReadonlyArray<string>
  readonly updatedBefore: number
}

/** The processes that run stored runs, and the drains that stand. */
export interface Processes {
  readonly processes: ReadonlyArray<Process>
  readonly drains: ReadonlyArray<Drain>
}

/** A question of a conversation. */
export interface Ask {
  readonly agent: string
  readonly runId: string
  /** The answered runs whose messages come before. */
  readonly before: ReadonlyArray<string>
  readonly text: string
  readonly files: ReadonlyArray<File>
}

export interface Source {
  readonly isFile: boolean
  readonly info: () => Promise<Info>
  readonly runs: (query: ListQuery) => Promise<RunPage>
  /** Returns the counts of the runs that started in a range. */
  readonly overview: (range: CountRange) => Promise<Overview>
  /** Returns up to `limit` records after a revision. */
  readonly records: (runId: string, after: number, limit: number) => Promise<Part>
  readonly mediaUrl: (runId: string, mediaId: string) => string
  readonly exportUrl: (runId: string) => string
  /** Calls `onChange` for each change of the runs that wait for a person, until the returned function is called. */
  readonly followWaiting: (onChange: (change: WaitingChange) => void) => () => void
  /** Returns the questions of runs that wait. */
  readonly waiting: (runIds: ReadonlyArray<string>) => Promise<ReadonlyArray<WaitingQuestion>>
  readonly questions: (runId: string) => Promise<ReadonlyArray<OpenQuestion>>
  readonly answer: (runId: string, decision: Decision) => Promise<void>
  readonly cancel: (runId: string) => Promise<void>
  readonly retry: (runId: string) => Promise<void>
  /** Gives runs a tag, or takes it from them. */
  readonly tag: (change: "add" | "remove", tag: string, runIds: ReadonlyArray<string>) => Promise<void>
  /** Counts the runs that need somebody. */
  readonly needy: (runs: RunsOf) => Promise<ReadonlyArray<Group>>
  /** Offers the runs with a need to workers again. Returns how many. */
  readonly requeue: (runs: RunsOf & { readonly need: Need }) => Promise<number>
  /** Deletes old runs. Returns how many. */
  readonly prune: (old: Old) => Promise<number>
  readonly processes: () => Promise<Processes>
  /** Lets processes start no further run, and hand on those that they have. */
  readonly drain: (target: Target) => Promise<void>
  readonly undrain: (target: Target) => Promise<void>
  readonly fork: (runId: string, fork: Fork) => Promise<string>
  /** Returns a page of conversations, those whose questions or answers have the words of a search. */
  readonly conversations: (search: string, after?: string) => Promise<ConversationPage>
  /** Names a conversation. An empty name takes its name away. */
  readonly rename: (conversation: string, name: string) => Promise<void>
  readonly remove: (conversation: string) => Promise<void>
  /** Starts the run of a question after the messages of other runs. */
  readonly ask: (question: Ask) => Promise<void>
  /** Returns a run for the chat. Absent where the page reads journals. */
  readonly chatRun?: (runId: string) => Promise<ChatRun>
  readonly experiments: () => Promise<ReadonlyArray<Experiment>>
  readonly experiment: (file: string) => Promise<ExperimentReport>
  readonly dataSets: () => Promise<ReadonlyArray<DataSet>>
  readonly addRow: (row: typeof NewRow.Type) => Promise<void>
  readonly scores: () => Promise<ReadonlyArray<Score>>
  readonly score: (score: typeof NewScore.Type) => Promise<void>
  readonly scenarios: () => Promise<ReadonlyArray<MatrixReport>>
  /** Returns the address of the page of a `ui_resource`. */
  readonly pageUrl: (server: string, uri: string) => string
  /** Calls `onEvent` for each event after a revision, until the returned function is called. */
  readonly follow: (
    runId: string,
    after: number,
    onEvent: (event: LiveEvent) => void,
    onLink?: (link: Link) => void
  ) => () => void
}

/** The connection of a follower. A lost one is opened again by the browser, a closed one is not. */
export type Link = "open" | "lost" | "closed"

export interface LiveEvent {
  readonly type: string
  readonly runId: string
  readonly revision?: number
  /** The turn, counted from 0. */
  readonly step?: number
  readonly text?: string
  readonly blockType?: string
  readonly part?: { readonly type: string; readonly delta?: string }
}

/** A problem reported by the server. */
export class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Returns the path of the page, without a slash at its end. */
export const base = () => location.pathname.replace(/\/$/, "")

const signature = (): { readonly "x-kernai-person"?: string } => {
  const name = person.value.trim()
  return name === "" ? {} : { "x-kernai-person": encodeURIComponent(name) }
}

const request = async (method: string, path: string, body?: BodyInit, type = "application/json") => {
  const change = method === "GET" ? {} : { "x-kernai-studio": "1", "content-type": type, ...signature() }
  // A small change is sent although the page is being left.
  const keepalive = typeof body === "string" && body.length < 30_000
  const init = { method, headers: change, keepalive, ...(body === undefined ? {} : { body }) }
  const response = await fetch(base() + path, init).catch(() => {
    throw new Refused(0, "the server cannot be reached")
  })
  if (response.ok) return response
  const problem = await response.json().catch(() => ({}))
  throw new Refused(response.status, problem.detail ?? problem.title ?? `the server responded ${response.status}`)
}

export const get = async <A>(path: string): Promise<A> => (await request("GET", path)).json()

export const send = (path: string, body: unknown): Promise<Response> => request("POST", path, JSON.stringify(body))

const post = async <A>(path: string, body: unknown): Promise<A> => (await send(path, body)).json()

interface Changed {
  readonly runIds: ReadonlyArray<string>
}

export const of = (runId: string) => `/runs/${encodeURIComponent(runId)}`

/** Exchanges the token in the address for a cookie, and removes it from the address. */
export const enter = async (): Promise<void> => {
  const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1]
  if (token === undefined) return
  history.replaceState(null, "", `${location.pathname}#/`)
  await request("POST", "/session", JSON.stringify({ token }))
}

const queryOf = (query: ListQuery): string =>
  new URLSearchParams(
    Object.entries(query)
      .flatMap(([name, value]) => [value ?? ""].flat().map((text): [string, string] => [name, text]))
      .filter(([, text]) => text !== "")
  ).toString()

export const server: Source = {
  isFile: false,
  info: () => get("/data/info"),
  runs: (query) => get(`/data/runs?${queryOf(query)}`),
  overview: ({ from, slots, to }) => get(`/data/overview?from=${from}&to=${to}&slots=${slots}`),
  records: (runId, after, limit) => get(`/data${of(runId)}/records?after=${after}&limit=${limit}`),
  mediaUrl: (runId, mediaId) => `${base()}/api${of(runId)}/media/${encodeURIComponent(mediaId)}`,
  exportUrl: (runId) => `${base()}/data${of(runId)}/export`,
  followWaiting: (onChange) => {
    let leave = () => {}
    const join = () => {
      leave = followed<WaitingChange>("/data/waiting", onChange, (link) => {
        if (link !== "closed") return
        const timer = setTimeout(join, 5_000)
        leave = () => clearTimeout(timer)
      })
    }
    join()
    return () => leave()
  },
  waiting: (runIds) => get(`/data/questions?${new URLSearchParams(runIds.map((id) => ["run", id])).toString()}`),
  questions: (runId) => get(`/api${of(runId)}/questions`),
  answer: async (runId, decision) => void (await send(`/api${of(runId)}/answers`, { answers: [decision] })),
  cancel: async (runId) => void (await send(`/api${of(runId)}/cancel`, { reason: "stopped in the studio" })),
  retry: async (runId) => void (await send(`/api${of(runId)}/retry`, {})),
  tag: async (change, tag, runIds) => void (await send("/data/tags", { change, tag, runIds })),
  needy: (runs) => get(`/api/operations?${new URLSearchParams({ ...runs }).toString()}`),
  requeue: async (runs) => (await post<Changed>("/api/operations/requeue", runs)).runIds.length,
  prune: async (old) => (await post<Changed>("/api/operations/prune", old)).runIds.length,
  processes: () => get("/api/processes"),
  drain: async (target) => void (await send("/api/processes/drain", target)),
  undrain: async ({ agent, process, version }) =>
    void (await send("/api/processes/undrain", { agent, process, version })),
  fork: async (runId, fork) => (await post<{ runId: string }>(`/data${of(runId)}/fork`, fork)).runId,
  scenarios: () => get("/data/scenarios"),
  dataSets: () => get("/data/sets"),
  addRow: async (row) => void (await send("/data/sets", row)),
  scores: () => get("/data/scores"),
  score: async (score) => void (await send("/data/scores", score)),
  experiments: () => get("/data/experiments"),
  experiment: (file) => get(`/data/experiments/${encodeURIComponent(file)}`),
  pageUrl: (server, uri) => `${base()}/data/page?${new URLSearchParams({ server, uri }).toString()}`,
  conversations: (search, after) => get(`/data/conversations?${queryOf({ search, ...(after && { after }) })}`),
  rename: async (conversation, name) => void (await send(`/data/conversations/${conversation}`, { name })),
  remove: async (conversation) => void (await request("DELETE", `/data/conversations/${conversation}`)),
  ask: async ({ agent, before, files, runId, text }) => {
    const media = await Promise.all(files.map((file) => upload(runId, file)))
    const results = await Promise.all(before.map((one) => get<Result>(`/api${of(one)}/result`)))
    const parts = media.map(({ id, kind, mimeType }) => ({ type: kind, file_id: id, media_type: mimeType }))
    const history = results.flatMap(({ messages }) => messages)
    await send("/api/runs", { agent, runId, history, input: [{ type: "text", text }, ...parts] })
  },
  follow: (runId, after, onEvent, onLink) =>
    followed(`/api${of(runId)}/events?until=end${after === 0 ? "" : `&after=${after}`}`, onEvent, onLink)
}

interface Result {
  readonly messages: ReadonlyArray<unknown>
}

const upload = async (
  runId: string,
  file: File
): Promise<{ readonly id: string; readonly kind: string; readonly mimeType: string }> =>
  (await request("POST", `/api${of(runId)}/media`, file, file.type)).json()

/** Reads a stream of events until the returned function is called. */
export const followed = <A = LiveEvent>(
  path: string,
  onEvent: (event: A) => void,
  onLink: (link: Link) => void = () => undefined
): (() => void) => {
  const stream = new EventSource(base() + path)
  stream.onopen = () => onLink("open")
  stream.onerror = () => onLink(stream.readyState === EventSource.CLOSED ? "closed" : "lost")
  stream.onmessage = ({ data }) => onEvent(JSON.parse(data))
  return () => stream.close()
}
