import { describe } from "@effect/vitest"
import { Effect } from "effect"
import { RunStore } from "kernai"
import { suite } from "./support/runStore.ts"

describe("RunStore.layerMemory", () => {
  const store = Effect.runSync(RunStore.makeMemory)
  suite(Effect.succeed(store))
})
