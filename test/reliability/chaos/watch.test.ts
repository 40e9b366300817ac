import { assert, describe, it } from "vitest"
import { lookEvery, Watch } from "./watch.ts"

describe("the time that runs of the chaos wait", () => {
  it("is the time since healing on a machine that is not busy", () => {
    const watch = new Watch(1_000)
    for (let look = 1; look <= 150; look++) watch.look(1_000 + look * (lookEvery + 10))
    assert.strictEqual(watch.waited, 150 * (lookEvery + 10))
    assert.strictEqual(watch.waitsFor({ runId: "pay1", revision: 3 }), watch.waited)
  })

  it("is only a part of a look that took long", () => {
    const watch = new Watch(0)
    watch.look(60_000)
    watch.look(60_000 + lookEvery)
    assert.strictEqual(watch.waited, 2.5 * lookEvery)
  })

  it("begins again whenever something is stored of a run that kills its process", () => {
    const watch = new Watch(0)
    assert.strictEqual(watch.waitsFor({ runId: "poison1", revision: 5 }), 0)
    watch.look(lookEvery)
    assert.strictEqual(watch.waitsFor({ runId: "poison1", revision: 5 }), lookEvery)
    assert.strictEqual(watch.waitsFor({ runId: "poison1", revision: 6 }), 0)
  })
})
