import { Effect } from "effect"
import { FileMediaStore } from "kernai/file"
import { Media, type MediaStore } from "kernai"
import { MediaStoreSuite } from "kernai/testing"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { type Mutation as MutationOf, sees } from "../support/mutations.ts"
import { folder } from "../support/folder.ts"

type Mutation = MutationOf<MediaStore.MediaStoreShape>

/** The same fault in the store of the application and in those of its runs. */
const everywhere =
  (mutation: Mutation): Mutation =>
  (store) => ({
    ...mutation(store),
    run: (...args) =>
      Effect.map(store.run(...args), (run) => ({ ...run, ...everywhere(mutation)(run), ...mutation(run) }))
  })

/** Stores that do one thing wrong. */
const mutations: { readonly [name: string]: Mutation } = {
  "says nothing of a conflict": everywhere((store) => ({
    put: (media) =>
      Effect.catchTag(store.put(media), "MediaConflict", ({ id }) => Effect.succeed(Object.freeze({ ...media, id })))
  })),
  "has no limit": everywhere((store) => ({
    put: (media) =>
      Effect.catchTag(store.put(media), "LimitExceeded", () =>
        Effect.map(Media.id(media), (id) => Object.freeze({ ...media, id }))
      )
  })),
  "loses what it is told of a medium": everywhere((store) => ({
    put: (media) => store.put({ ...media, metadata: {} })
  })),
  "gives ids of its own": everywhere((store) => ({
    put: (media) => Effect.map(store.put(media), (stored) => ({ ...stored, id: `${stored.id}0` }))
  })),
  "lists the newest first": everywhere((store) => ({ list: Effect.map(store.list, (all) => all.toReversed()) })),
  "counts one too many": everywhere((store) => ({ size: Effect.map(store.size, (size) => size + 1) })),
  "loses contents": everywhere((store) => ({
    admit: (parts) => Effect.map(store.admit(parts), (admitted) => admitted.slice(1))
  })),
  "shows every run to every other": (store) => ({ run: (_, origins) => store.run("one for all", origins) }),
  "hides the application's media from runs": (store) => ({
    run: (...args) => Effect.map(store.run(...args), (run) => ({ ...run, get: () => Effect.succeedNone }))
  }),
  "hides from a fork what it comes from": (store) => ({ run: (runId) => store.run(runId) }),
  "releases nothing": () => ({ release: () => Effect.void }),
  "releases everything": (store) => ({
    release: (runIds) => store.release([...runIds, "media/kept"])
  }),
  "forgets a run that is put away": (store) => ({
    run: (runId, origins) =>
      Effect.acquireRelease(store.run(runId, origins), () => Effect.ignore(store.release([runId])))
  })
}

sees(
  "MediaStoreSuite",
  (mutate) =>
    Effect.map(folder, (directory) => {
      const store = Effect.provide(FileMediaStore.make(directory), NodeFileSystem.layer)
      const open = Effect.map(store, (store) => ({ ...store, ...mutate(store) }))
      return MediaStoreSuite.checks(open, { durable: true })
    }),
  mutations
)
