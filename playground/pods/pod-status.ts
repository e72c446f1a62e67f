import type { Condition, Pod, PodStatus } from '../objects/kinds.js'
import { timestamp } from '../objects/time.js'

/** People set this on a pod, as label or annotation, to make it unready by hand. */
export const readyKey = 'playground.kpng.io/ready'

/** Whether the pod's owner wants it to count as ready. */
export const wantsReady = ({ metadata }: Pod): boolean =>
  metadata.labels?.[readyKey] !== 'false' && metadata.annotations?.[readyKey] !== 'false'

/** A condition with its time of change: the old one when the status is the same. */
function condition(
  old: readonly Condition[] | undefined,
  type: string,
  isTrue: boolean,
  reason = '',
  message = '',
): Condition {
  const status = isTrue ? 'True' : 'False'
  const before = old?.find((item) => item.type === type)
  const lastTransitionTime = before?.status === status ? (before.lastTransitionTime ?? null) : timestamp()
  return { type, status, lastProbeTime: null, lastTransitionTime, ...(reason ? { reason, message } : {}) }
}

/** Conditions of others, such as readiness gates, are kept. */
function merged(old: readonly Condition[] | undefined, own: readonly Condition[]): Condition[] {
  const types = new Set(own.map(({ type }) => type))
  return [...own, ...(old ?? []).filter(({ type }) => !types.has(type))]
}

export const scheduledCondition = (pod: Pod, isTrue: boolean, message = ''): Condition[] =>
  merged(pod.status?.conditions, [
    condition(pod.status?.conditions, 'PodScheduled', isTrue, isTrue ? '' : 'Unschedulable', message),
  ])

const gatesOpen = ({ spec, status }: Pod): boolean =>
  (spec.readinessGates ?? []).every(({ conditionType }) =>
    status?.conditions?.some(({ type, status: value }) => type === conditionType && value === 'True'),
  )

/** The status of a pod whose echo server listens. */
export function runningStatus(pod: Pod, addresses: readonly string[], hostIP: string, started: boolean): PodStatus {
  const old = pod.status?.conditions
  const containersReady = started && wantsReady(pod)
  const ready = containersReady && gatesOpen(pod)
  const why = !started
    ? 'the echo server is starting'
    : containersReady
      ? 'a readiness gate is closed'
      : `${readyKey} is "false"`
  const startTime = pod.status?.startTime ?? timestamp()
  const reason = started && containersReady ? 'ReadinessGatesNotReady' : 'ContainersNotReady'
  return {
    ...pod.status,
    phase: 'Running',
    qosClass: 'BestEffort',
    hostIP,
    hostIPs: [{ ip: hostIP }],
    podIP: addresses[0],
    podIPs: addresses.map((ip) => ({ ip })),
    startTime,
    conditions: merged(old, [
      condition(old, 'PodReadyToStartContainers', true),
      condition(old, 'Initialized', true),
      condition(old, 'Ready', ready, ready ? '' : reason, why),
      condition(old, 'ContainersReady', containersReady, containersReady ? '' : 'ContainersNotReady', why),
      condition(old, 'PodScheduled', true),
    ]),
    containerStatuses: (pod.spec.containers ?? []).map(({ name, image = '' }) => ({
      name,
      image,
      imageID: 'kpng://echo',
      ready: containersReady,
      started: true,
      restartCount: 0,
      state: { running: { startedAt: startTime } },
    })),
  }
}

/** The status of a pod that could not open its ports. */
export function failedStatus(pod: Pod, reason: string, message: string): PodStatus {
  const old = pod.status?.conditions
  return {
    ...pod.status,
    phase: 'Failed',
    reason,
    message,
    conditions: merged(old, [
      condition(old, 'Ready', false, 'PodFailed'),
      condition(old, 'ContainersReady', false, 'PodFailed'),
    ]),
    containerStatuses: (pod.spec.containers ?? []).map(({ name, image = '' }) => ({
      name,
      image,
      imageID: 'kpng://echo',
      ready: false,
      started: false,
      restartCount: 0,
      state: { terminated: { exitCode: 1, reason, message } },
    })),
  }
}
