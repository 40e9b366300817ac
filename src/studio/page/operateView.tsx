/**
 * Runs that need somebody, by need, agent and version: offers them to workers again, and deletes old runs. Below them the
 * processes that run stored runs.
 */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { Group, Need } from "../../Operations.ts"
import { waitReason } from "../FailureCause.ts"
import { DialogBox } from "./dialogBox.tsx"
import { ago, counted, named, sentence } from "./format.ts"
import { Icon } from "./icons.tsx"
import { attempt, canChange, data, place, runAddress, setQuery } from "./pageStore.ts"
import { ProcessesView } from "./processesView.tsx"
import { Skeleton } from "./skeleton.tsx"
import type { RunsOf } from "./source.ts"
import { StatusChip } from "./status.tsx"
import { say } from "./toasts.tsx"

/** The status whose shape and color stand for a need, and what it means. */
const kinds: Readonly<Record<Need, { readonly status: string; readonly means: string }>> = {
  poisoned: { status: "failed", means: "workers gave them up: their processes died of them" },
  stuck: { status: "interrupted", means: "their worker died, or nothing happened for ten minutes" },
  unplaced: { status: "queued", means: "no worker took them" },
  waiting: { status: "waiting", means: "a person or the host decides" },
  no_answer: { status: "no_answer", means: "they ended without an answer" },
  failed: { status: "failed", means: "they ended with an error" }
}

/** Reads `agent:x version:y tenant:z`. Other words are left out. */
const filterOf = (text: string): RunsOf =>
  Object.fromEntries(
    text.split(/\s+/).flatMap((word) => {
      const [, name = "", value = ""] = /^(agent|version|tenant):(.+)$/.exec(word) ?? []
      return name === "" ? [] : [[name, value]]
    })
  )

export const OperateView = () => {
  const groups = useSignal<ReadonlyArray<Group> | undefined>(undefined)
  const text = place.value.query.get("q") ?? ""
  const filter = filterOf(text)
  const read = async () => void (groups.value = await data().needy(filterOf(text)))
  useEffect(() => {
    void attempt(read)
    const timer = setInterval(() => void attempt(read), 5_000)
    return () => clearInterval(timer)
  }, [text])
  return (
    <section class="screen" aria-label="Operate">
      <header>
        <h1>Operate</h1>
        <p class="filter">
          <Icon name="search" />
          <input
            data-filter
            type="search"
            aria-label="Filter by agent, version and tenant"
            placeholder="agent:clerk version:4 tenant:acme  ( / )"
            value={text}
            onInput={({ currentTarget: { value } }) => setQuery("q", value === "" ? undefined : value)}
          />
        </p>
        {canChange.value && <Prune filter={filter} after={read} />}
      </header>
      {groups.value === undefined ? (
        <Skeleton label="counting the runs" />
      ) : groups.value.length === 0 ? (
        <div class="empty">
          <h2>No run needs anybody</h2>
          <p>Runs that wait, failed, or lost their worker appear here.</p>
        </div>
      ) : (
        <Needs groups={groups.value} filter={filter} after={read} />
      )}
      <ProcessesView filter={filter} />
    </section>
  )
}

interface Acting {
  readonly filter: RunsOf
  /** Reads the groups again. */
  readonly after: () => Promise<void>
}

const Needs = ({ groups, ...acting }: Acting & { readonly groups: ReadonlyArray<Group> }) => (
  <div class="list wide needs">
    <table>
      <thead>
        <tr>
          {["Need", "Agent", "Version", "Runs", "Oldest", "Action"].map((name) => (
            <th key={name} scope="col" class={name === "Runs" ? "number" : ""}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {groups.map((group) => (
          <Row key={JSON.stringify([group.need, group.reason, group.agent, group.version])} group={group} {...acting} />
        ))}
      </tbody>
    </table>
  </div>
)

const Row = ({ after, filter, group }: Acting & { readonly group: Group }) => {
  const { agent, need, oldest, reason, runs, since, version } = group
  const { means, status } = kinds[need]
  return (
    <tr>
      <td title={means}>
        <StatusChip status={status}>{sentence(named(need))}</StatusChip>{" "}
        <em>{reason === undefined ? means : named(waitReason({ reason }))}</em>
      </td>
      <td>{agent}</td>
      <td>{version ?? "–"}</td>
      <td class="number">{runs.toLocaleString("en")}</td>
      <td>
        <a data-row href={runAddress(oldest)}>
          {ago(since)}
        </a>
      </td>
      <td>
        {need === "waiting" ? (
          <a href="#/questions">Approvals</a>
        ) : (
          canChange.value && (
            <button
              aria-label={`Requeue ${named(need)} runs of ${agent}`}
              onClick={() =>
                void requeue({ ...filter, agent, need, ...(version === undefined ? {} : { version }) }, after)
              }
            >
              <Icon name="rotate-ccw" /> Requeue
            </button>
          )
        )}
      </td>
    </tr>
  )
}

const requeue = (filter: RunsOf & { readonly need: Need }, after: Acting["after"]) =>
  attempt(async () => {
    say(`Offered ${counted(await data().requeue(filter), "run")} to workers again`)
    await after()
  })

// ---------------------------------------------------------------- deletion

const statuses = ["completed", "cancelled", "no_answer", "failed"] as const

const Prune = (acting: Acting) => {
  const isOpen = useSignal(false)
  return (
    <>
      <button onClick={() => (isOpen.value = true)}>
        <Icon name="x" /> Delete old runs
      </button>
      {isOpen.value && <PruneBox {...acting} onClose={() => (isOpen.value = false)} />}
    </>
  )
}

const PruneBox = ({ after, filter: { agent, tenant }, onClose }: Acting & { readonly onClose: () => void }) => {
  const status = useSignal<string>("completed")
  const days = useSignal("30")
  const millis = Number(days.value) * 86_400_000
  const isValid = days.value.trim() !== "" && millis >= 0
  const of = { ...(agent === undefined ? {} : { agent }), ...(tenant === undefined ? {} : { tenant }) }
  const prune = () =>
    attempt(async () => {
      const count = await data().prune({ status: [status.value], updatedBefore: Date.now() - millis, ...of })
      onClose()
      say(`Deleted ${counted(count, "run")}`)
      await after()
    })
  return (
    <DialogBox label="Delete old runs" onClose={onClose}>
      <h2>Delete old runs</h2>
      <p>
        Deletes runs{agent === undefined ? "" : ` of ${agent}`}
        {tenant === undefined ? "" : ` of the tenant ${tenant}`} with their tasks and media. They cannot be brought
        back.
      </p>
      <label class="field">
        Status
        <select value={status.value} onChange={(event) => (status.value = event.currentTarget.value)}>
          {statuses.map((name) => (
            <option key={name} value={name}>
              {named(name)}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        Unchanged for days
        <input type="number" min="0" value={days.value} onInput={(event) => (days.value = event.currentTarget.value)} />
      </label>
      <p class="actions">
        <button class="primary" disabled={!isValid} onClick={() => void prune()}>
          Delete
        </button>
        <button onClick={onClose}>Close</button>
      </p>
    </DialogBox>
  )
}
