/**
 * What a start sends to its store, bare and one after another: a process commits the run and offers it, another one looks
 * at it, claims it, reads its state, and commits the resume. Where the worker is elsewhere, a message passes between them.
 */
import { Effect, type Scope } from "effect"
import * as fs from "node:fs/promises"
import { DatabaseSync } from "node:sqlite"
import * as path from "node:path"
import * as Bare from "../test/cluster/bare.ts"
import type { Place } from "./workerSide.ts"

/** The steps of a process that submits a run, and of its worker. */
interface Steps {
  readonly submit: ReadonlyArray<Effect.Effect<unknown>>
  readonly work: ReadonlyArray<Effect.Effect<unknown>>
}

const body = "x".repeat(300)

/** Adds a line to a file, which is synced with its folder if it is new. */
const append = async (file: string, folder?: string) => {
  const handles = [await fs.open(file, "a"), ...(folder === undefined ? [] : [await fs.open(folder, "r")])]
  await handles[0]?.appendFile(body)
  await Promise.all(handles.map((handle) => handle.sync()))
  await Promise.all(handles.map((handle) => handle.close()))
}

/** Replaces a file as a whole. It waits for no disk. */
const replace = async (file: string) => {
  await fs.writeFile(`${file}.new`, body)
  await fs.rename(`${file}.new`, file)
}

/** Each process appends to the journal and replaces the head; the run is offered and claimed by its lease. */
const onFiles = (place: string): Effect.Effect<Steps> =>
  Effect.promise(async () => {
    const folder = path.join(place, ".bare")
    await fs.mkdir(folder, { recursive: true })
    let count = 0
    const file = (ending: string) => path.join(folder, `${count}.${ending}`)
    const step = (work: () => Promise<unknown>) => Effect.promise(work)
    const head = step(() => replace(file("json")))
    const lease = step(() => replace(file("lease")))
    const read = step(() => fs.readFile(file("jsonl")))
    const first = step(() => {
      count++
      return append(file("jsonl"), folder)
    })
    return { submit: [first, head, lease], work: [read, lease, read, step(() => append(file("jsonl"))), head] }
  })

/** In SQLite each step that writes waits for the disk. */
const onSqlite = (place: string): Effect.Effect<Steps, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(`${place}-bare`)),
      (db) => Effect.sync(() => db.close())
    ),
    (db) => {
      db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = full; CREATE TABLE IF NOT EXISTS bare (body TEXT)")
      const insert = db.prepare("INSERT INTO bare VALUES (?)")
      const select = db.prepare("SELECT body FROM bare WHERE rowid = 1")
      const write = Effect.sync(() => insert.run(body))
      const read = Effect.sync(() => select.get())
      return { submit: [write, write], work: [read, write, read, read, write] }
    }
  )

const onPostgres = (url: string) =>
  Effect.map(Bare.statements(url), ({ commit, read }) => ({
    submit: [commit, read],
    work: [read, read, read, read, commit]
  }))

const stepsOn = ({ at, kind }: Place): Effect.Effect<Steps, unknown, Scope.Scope> | undefined => {
  switch (kind) {
    case "memory":
      return undefined
    case "file":
      return onFiles(at)
    case "sqlite":
      return onSqlite(at)
    case "postgres":
      return onPostgres(at)
  }
}

/** A bare start on a store. Undefined for one in memory. */
export const bareStart = (place: Place, where: "here" | "elsewhere") => {
  const steps = stepsOn(place)
  if (steps === undefined) return undefined
  const message = where === "here" ? Effect.succeed(Effect.void) : Bare.echo
  return Effect.zipWith(steps, message, ({ submit, work }, message) =>
    Effect.all([...submit, message, ...work], { discard: true })
  )
}
