import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { LiveTree, Trees } from "../../src/store-kit/internal/liveTree.ts"

describe("LiveTree", () => {
  it("shows a run to the followers that its first event wakes", () => {
    const trees = new Trees()
    const tree = new LiveTree(trees, undefined, 10)
    let found: boolean | undefined
    const follower = Effect.map(trees.opened("root"), () => {
      found = trees.find("root")?.runs.has("run")
    })
    Effect.runFork(follower)
    tree.enter("root", "run", { published: 1, reply: undefined, reports: undefined })
    assert.isTrue(found)
  })
})
