/** Runs addresses.json: agents and topics as text (CP-12, CP-13). */
import { assert, describe, it } from "@effect/vitest"
import { Equal, Hash, Result } from "effect"
import { Address } from "kernai"
import * as Vectors from "../support/vectors.ts"

type Parts = { readonly type: string; readonly key?: string; readonly source?: string; readonly namespace?: string }
interface Vector {
  readonly id: string
  readonly class: string
  readonly parse?: string
  readonly make?: Parts
  readonly expect: { readonly fields?: Parts; readonly string?: string; readonly error?: string }
}
interface Convention {
  readonly event: string
  readonly topic: string
  readonly rootRunId?: string
  readonly agentId?: string
  readonly namespace?: string
}

const parts: Vectors.Keys = { type: true, key: true, source: true, namespace: true }

const file = Vectors.load<{
  readonly vectors: ReadonlyArray<Vector>
  readonly topicConventions?: ReadonlyArray<Convention>
}>("addresses", {
  vectors: [
    { ...Vectors.about, class: true, parse: true, make: parts, expect: { fields: parts, string: true, error: true } }
  ],
  topicConventions: [
    { ...Vectors.about, event: true, topic: true, runId: true, rootRunId: true, agentId: true, namespace: true }
  ]
})
const tally = Vectors.tally("addresses.json")

type Read = Result.Result<Address.AgentId | Address.TopicId, Address.InvalidAddress>

const kinds: {
  readonly [name: string]: { readonly parse: (text: string) => Read; readonly of: (parts: Parts) => Read }
} = {
  AgentId: { parse: Address.AgentId.parse, of: (parts) => Address.AgentId.of({ key: "", ...parts }) },
  TopicId: { parse: Address.TopicId.parse, of: Address.TopicId.of }
}

describe("addresses.json", () => {
  for (const vector of file.vectors) {
    const kind = kinds[vector.class]
    const read =
      kind === undefined
        ? undefined
        : vector.parse !== undefined
          ? kind.parse(vector.parse)
          : vector.make !== undefined
            ? kind.of(vector.make)
            : undefined
    if (kind === undefined || read === undefined) {
      tally.skip(vector.id)
      continue
    }
    it(`${vector.id}: ${vector.parse ?? JSON.stringify(vector.make)}`, () => {
      if (vector.expect.error !== undefined) {
        assert.isTrue(Result.isFailure(read), "expected a failure")
        if (Result.isFailure(read)) assert.strictEqual(read.failure._tag, vector.expect.error)
      } else {
        const address = Result.getOrThrow(read)
        if (vector.expect.fields !== undefined) assert.deepStrictEqual({ ...address }, vector.expect.fields)
        assert.strictEqual(String(address), vector.expect.string)
        const again = Result.getOrThrow(kind.parse(String(address)))
        assert.isTrue(Equal.equals(address, again))
        assert.strictEqual(Hash.hash(address), Hash.hash(again))
      }
      tally.ran()
    })
  }

  for (const { event, topic, rootRunId, agentId, namespace } of file.topicConventions ?? []) {
    it(`${event}: ${topic}`, () => {
      const id =
        agentId === undefined
          ? Address.TopicId.progress(rootRunId ?? "", namespace)
          : Result.map(Address.AgentId.parse(agentId), Address.TopicId.stream)
      assert.strictEqual(String(Result.getOrThrow(id)), topic)
      tally.ran()
    })
  }
  tally.report()
})
