/** Voice input, where the browser recognizes speech on this device: no sound leaves the machine. */

import { useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { Icon } from "./icons.tsx"

/** The part of the Web Speech API that the button uses. */
interface Recognition {
  lang: string
  processLocally: boolean
  onresult: (event: { readonly results: ReadonlyArray<ReadonlyArray<{ readonly transcript: string }>> }) => void
  onend: () => void
  start(): void
  stop(): void
}

interface Recognizer {
  new (): Recognition
  readonly available?: (options: {
    readonly langs: ReadonlyArray<string>
    readonly processLocally: true
  }) => Promise<string>
}

declare global {
  interface Window {
    readonly SpeechRecognition?: Recognizer
  }
}

const isAvailable = async (): Promise<boolean> => {
  const options = { langs: [navigator.language], processLocally: true } as const
  const state = await window.SpeechRecognition?.available?.(options).catch(() => undefined)
  return state === "available"
}

export const VoiceButton = ({ onText }: { onText: (text: string) => void }) => {
  const canListen = useSignal(false)
  const isListening = useSignal(false)
  const current = useRef<Recognition | undefined>(undefined)
  useEffect(() => {
    void isAvailable().then((found) => (canListen.value = found))
    return () => current.current?.stop()
  }, [])
  const toggle = () => {
    if (isListening.value) return current.current?.stop()
    const Recognition = window.SpeechRecognition
    if (Recognition === undefined) return
    const recognition = new Recognition()
    recognition.lang = navigator.language
    recognition.processLocally = true
    recognition.onresult = ({ results }) => onText(results[0]?.[0]?.transcript ?? "")
    recognition.onend = () => (isListening.value = false)
    current.current = recognition
    isListening.value = true
    recognition.start()
  }
  if (!canListen.value) return null
  return (
    <button type="button" class="plain" aria-pressed={isListening.value} onClick={toggle}>
      <Icon name="mic" /> {isListening.value ? "Listening" : "Speak"}
    </button>
  )
}
