/** What is changed before a turn is played again: its instructions, its messages and results, its model and settings. */

import { useSignal } from "@preact/signals"
import type { RunState } from "../../RunState.ts"
import type { Fork } from "../internal/forkEdits.ts"
import { counted } from "./format.ts"
import { Icon } from "./icons.tsx"
import { useLatest } from "./latest.tsx"
import { attempt, data, info } from "./pageStore.ts"
import { isPlayable } from "./playground.ts"
import { changesOf, promptParts } from "./promptParts.ts"

interface Props {
  /** The run at the revision at which the turn was prepared. */
  readonly shown: RunState
  readonly revision: number
  readonly onPlay: (runId: string) => void
}

interface Settings {
  readonly model: string
  readonly temperature: string
}

const unchanged: Settings = { model: "", temperature: "" }

const settingsOf = ({ model, temperature }: Settings): Pick<Fork, "model" | "temperature"> => ({
  ...(model !== "" && { model }),
  ...(temperature !== "" && { temperature: Number(temperature) })
})

export const PlayForm = ({ onPlay, revision, shown }: Props) => {
  const texts = useSignal<ReadonlyMap<string, string>>(new Map())
  const settings = useSignal(unchanged)
  const times = useSignal(1)
  const parts = promptParts(shown)
  const latest = useLatest(parts, 12)
  const set = (key: string, before: string) => (text: string) => {
    const others = [...texts.value].filter(([one]) => one !== key)
    texts.value = new Map(text === before ? others : [...others, [key, text]])
  }
  const play = () =>
    attempt(async () => {
      const instructions = texts.value.get("instructions")
      const changes = { ...changesOf(parts, texts.value), ...settingsOf(settings.value) }
      const fork: Fork = { revision, ...changes, ...(instructions !== undefined && { instructions }) }
      for (let time = 0; time < times.value; time++) onPlay(await data().fork(shown.runId, fork))
    })
  return (
    <div class="card">
      <div class="prompt">
        <Text
          label="Instructions of this turn"
          before={shown.system ?? ""}
          text={texts.value.get("instructions")}
          onInput={set("instructions", shown.system ?? "")}
        />
        <div>
          {latest.more}
          {latest.shown.map(({ key, label, text }) => (
            <Text key={key} label={label} before={text} text={texts.value.get(key)} onInput={set(key, text)} />
          ))}
        </div>
      </div>
      <div class="play-bar">
        <ModelChoice
          before={shown.currentTurn?.model ?? ""}
          chosen={settings.value.model}
          onChoose={(model) => (settings.value = { ...settings.value, model })}
        />
        <Temperature
          value={settings.value.temperature}
          onInput={(temperature) => (settings.value = { ...settings.value, temperature })}
        />
        <Times value={times.value} onChoose={(count) => (times.value = count)} />
        <button class="primary" disabled={!isPlayable(shown)} onClick={() => void play()}>
          <Icon name="play" /> Play
        </button>
        {texts.value.size > 0 && (
          <button onClick={() => (texts.value = new Map())}>Undo {counted(texts.value.size, "change")}</button>
        )}
        <p class="quiet">
          {isPlayable(shown)
            ? "Instructions, model and temperature are those of this turn. Later turns are as their agent says."
            : `No worker of this page runs the agent ${shown.agent}, so the turn cannot be played here.`}
        </p>
      </div>
    </div>
  )
}

interface TextProps {
  readonly label: string
  readonly before: string
  /** The changed text. */
  readonly text: string | undefined
  readonly onInput: (text: string) => void
}

const Text = ({ before, label, onInput, text }: TextProps) => (
  <label class={`field ${text === undefined ? "" : "changed"}`}>
    {label}
    <textarea
      rows={Math.min(12, Math.max(2, before.split("\n").length))}
      value={text ?? before}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  </label>
)

interface ModelProps {
  readonly before: string
  readonly chosen: string
  readonly onChoose: (model: string) => void
}

const ModelChoice = ({ before, chosen, onChoose }: ModelProps) => {
  const { models } = info.value
  return (
    <label title={models.length === 0 ? "This server offers no other model" : ""}>
      Model{" "}
      <select value={chosen} disabled={models.length === 0} onChange={(event) => onChoose(event.currentTarget.value)}>
        <option value="">{`${before} (as before)`}</option>
        {models.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

const Temperature = ({ onInput, value }: { value: string; onInput: (value: string) => void }) => (
  <label>
    Temperature{" "}
    <input
      type="number"
      min="0"
      max="2"
      step="0.1"
      placeholder="Same"
      value={value}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  </label>
)

const Times = ({ onChoose, value }: { value: number; onChoose: (count: number) => void }) => (
  <label>
    Times{" "}
    <select value={value} onChange={(event) => onChoose(Number(event.currentTarget.value))}>
      {[1, 2, 3, 5].map((count) => (
        <option key={count}>{count}</option>
      ))}
    </select>
  </label>
)
