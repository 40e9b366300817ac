/**
 * The store of the Durable Object on a SQLite database of this process, and the object after an eviction.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { RunStore } from "kernai"
import { RunStoreSuite } from "kernai/testing"
import { DatabaseSync } from "node:sqlite"
import { Desk } from "../../examples/durableObject.ts"
import { layer, type Sql } from "../../examples/durableObjectRunStore.ts"

/** The part of a Durable Object's storage that the store uses. */
const storage = (): Sql => {
  const database = new DatabaseSync(":memory:")
  return {
    exec: (query, ...bindings) => {
      const rows = database.prepare(query).all(...bindings)
      return { toArray: () => rows }
    }
  }
}

describe("the run store in a Durable Object", () => {
  const sql = storage()
  const open = Effect.map(Layer.build(layer(sql)), Context.get(RunStore.RunStore))
  for (const { name, run } of RunStoreSuite.checks(open)) {
    it.live(name, () => Effect.scoped(run))
  }

  it("continues a run that waited while its object was evicted", async () => {
    const state = { storage: { sql: storage() } }
    const at = (path: string, body?: string) =>
      new Request(`http://desk/acme/runs${path}`, body === undefined ? {} : { method: "POST", body })
    const waiting: { readonly waits: string } = JSON.parse(
      await new Desk(state).fetch(at("", "Refund order 7.")).then((response) => response.text())
    )
    assert.include(waiting.waits, "approval_required")
    const [run]: ReadonlyArray<{ readonly runId: string; readonly status: string }> = JSON.parse(
      await new Desk(state).fetch(at("")).then((response) => response.text())
    )
    assert.strictEqual(run?.status, "waiting")
    const done = await new Desk(state).fetch(at(`/${run?.runId}/approve`, ""))
    assert.deepStrictEqual(await done.json(), { text: "Order 7 is refunded." })
  })
})
