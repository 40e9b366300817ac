/** Writes files atomically, readable by their owner only. */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Random from "effect/Random"
import { randomId } from "../../kit/randomId.ts"

export const replaceFile = Effect.fnUntraced(function* (file: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  const draft = `${file}.${randomId(yield* Random.Random, 2)}`
  // An existing draft is never overwritten, and a link at the path of the file is replaced, not followed.
  yield* fs.writeFileString(draft, text, { flag: "wx", mode: 0o600 }).pipe(
    Effect.andThen(fs.rename(draft, file)),
    Effect.onError(() => Effect.ignore(fs.remove(draft)))
  )
})
