import type { Log } from '@kpng/api'
import type { Controller, ControllerContext } from './controllers/controller.js'
import { deploymentController } from './controllers/deployments.js'
import { endpointSliceController } from './controllers/endpoint-slices.js'
import { endpointsController } from './controllers/endpoints.js'
import { EventRecorder } from './controllers/events.js'
import { garbageCollector } from './controllers/garbage-collector.js'
import { namespaceController, serviceCidrController } from './controllers/namespaces.js'
import type { Settings } from './options.js'
import { Kubelet } from './pods/kubelet.js'
import { PodAddresses } from './pods/pod-addresses.js'
import { Scheduler } from './pods/scheduler.js'
import type { Registry } from './registry/registry.js'
import type { ServiceNetwork } from './services/network.js'

/** Starts everything that keeps the cluster going. */
export function startControllers(
  registry: Registry,
  network: ServiceNetwork,
  settings: Settings,
  log: Log,
): Controller {
  const { maxGracePeriodSeconds, podReadyDelayMs: readyDelayMs, podServer } = settings
  const context: ControllerContext = { registry, events: new EventRecorder(registry), log, maxGracePeriodSeconds }
  const addresses = new PodAddresses(settings.podCidr, settings.podIpv6Addresses)
  const controllers: Controller[] = [
    namespaceController(context),
    serviceCidrController(context, network),
    garbageCollector(context),
    endpointSliceController(context),
    endpointsController(context),
    deploymentController(context),
    ...(settings.runPods ? [new Scheduler(context), new Kubelet(context, { readyDelayMs, addresses, podServer })] : []),
  ]
  return {
    close: async () => {
      await Promise.all(controllers.map((controller) => controller.close()))
    },
  }
}
