// One binary, every part of a Kubernetes control plane, chosen by the name it is called by.
//
// Linking once instead of six times halves the build, and the processes share their pages.
// Each part is the unmodified upstream command; nothing is added here but the choice.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	_ "time/tzdata" // CronJob time zones

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

var parts = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          kube(apiserver.NewAPIServerCommand),
	"kube-controller-manager": kube(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          kube(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 kube(kubectl.NewDefaultKubectlCommand),
	"kwok":                    runKwok,
}

func main() {
	name := filepath.Base(os.Args[0])
	if parts[name] == nil && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = filepath.Base(os.Args[0])
	}
	run := parts[name]
	if run == nil {
		names := make([]string, 0, len(parts))
		for part := range parts {
			names = append(names, part)
		}
		fmt.Fprintf(os.Stderr, "call me by the name of a part, or name it first: %s\n", strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func kube(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

// KWOK reads its configuration file before it builds its command, as its own main does.
// The process-wide flags belong to the Kubernetes parts: their --version would hide KWOK's.
func runKwok() int {
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		logger.Error("reading the configuration", "err", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("exit", "err", err)
		return 1
	}
	return 0
}
