import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { filesIn, isHeart, src } from "../support/house.ts"

it("names a stored event in five files of the heart, its schema, type, fold, emission and recorder entry, and in its log line", () => {
  const naming = filesIn(src).filter(
    (file) => isHeart(file) && readFileSync(join(src, file), "utf8").includes("agent_changed")
  )
  assert.sameMembers(naming, [
    "RunRecord.ts",
    "internal/state/recordSchema.ts",
    "internal/loop/handOver.ts",
    "internal/record/logLine.ts",
    "internal/record/recorderEntry.ts",
    "internal/state/advance.ts"
  ])
})
