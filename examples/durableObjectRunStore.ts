/**
 * A run store in the SQLite of a Cloudflare Durable Object: `keyValueRunStore.ts` over its tables.
 *
 * One object keeps the runs of one customer or conversation. Statements between two awaits are one transaction there,
 * so an append is checked and written together. `durableObject.ts` is the Worker around it.
 */
import type { Layer } from "effect"
import type { RunStore } from "kernai"
import * as KeyValueRunStore from "./keyValueRunStore.ts"

/** What the store needs of the storage of an object, as `state.storage.sql` has it. */
export interface Sql {
  readonly exec: (
    query: string,
    ...bindings: ReadonlyArray<string | number | null>
  ) => { readonly toArray: () => ReadonlyArray<{ readonly [column: string]: unknown }> }
}

const tables = `
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, revision INTEGER NOT NULL, cancelled INTEGER NOT NULL, worker TEXT, since INTEGER, expires INTEGER
);
CREATE TABLE IF NOT EXISTS appends (
  id TEXT NOT NULL, revision INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, revision)
);`

// As JSON, since SQLite keeps no half of a surrogate pair.
const encode = (id: string): string => JSON.stringify(id)
const decode = (id: unknown): string => String(JSON.parse(String(id)))

const databaseOf = (sql: Sql): KeyValueRunStore.Database => {
  for (const statement of tables.split(";").filter((text) => text.trim() !== "")) sql.exec(statement)
  const read = (query: string, ...bindings: ReadonlyArray<string | number>) => sql.exec(query, ...bindings).toArray()
  return {
    find: (runId) => {
      const [row] = read("SELECT * FROM runs WHERE id = ?", encode(runId))
      if (row === undefined) return undefined
      const { cancelled, expires, revision, since, worker } = row
      const lease =
        typeof worker === "string"
          ? {
              workerId: decode(worker),
              ...(since === null ? {} : { since: Number(since) }),
              expiresAt: Number(expires)
            }
          : undefined
      return { revision: Number(revision), isCancelled: cancelled === 1, lease }
    },
    runIds: () => read("SELECT id FROM runs").map(({ id }) => decode(id)),
    // An append is found by its last revision, so one that began before `revision` is read, too.
    texts: (runId, revision) =>
      read("SELECT text FROM appends WHERE id = ? AND revision > ? ORDER BY revision", encode(runId), revision).map(
        ({ text }) => String(text)
      ),
    append: (runId, text, { isCancelled, revision }) => {
      sql.exec(
        "INSERT INTO runs VALUES (?1, ?2, ?3, NULL, NULL, NULL) ON CONFLICT DO UPDATE SET revision = ?2, cancelled = ?3",
        encode(runId),
        revision,
        isCancelled ? 1 : 0
      )
      sql.exec("INSERT INTO appends VALUES (?, ?, ?)", encode(runId), revision, text)
    },
    lease: (runId, lease) => {
      const { expiresAt = null, since = null, workerId } = lease ?? {}
      const worker = workerId === undefined ? null : encode(workerId)
      sql.exec(
        "UPDATE runs SET worker = ?, since = ?, expires = ? WHERE id = ?",
        worker,
        since,
        expiresAt,
        encode(runId)
      )
    },
    remove: (runId) => {
      sql.exec("DELETE FROM appends WHERE id = ?", encode(runId))
      sql.exec("DELETE FROM runs WHERE id = ?", encode(runId))
    }
  }
}

/** Keeps runs in the SQLite of a Durable Object. Its followers end with the layer. */
export const layer = (sql: Sql): Layer.Layer<RunStore.RunStore> => KeyValueRunStore.layer(databaseOf(sql))
