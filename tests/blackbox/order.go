// A partner's first program, on the package that openapi-generator made: it must build without any other, and buy an eSIM.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"order/simgate"
)

func main() {
	settings := simgate.NewConfiguration()
	settings.Servers = simgate.ServerConfigurations{{URL: os.Getenv("API_URL")}}
	ctx := context.WithValue(context.Background(), simgate.ContextAPIKeys, map[string]simgate.APIKey{
		"partnerKey":    {Key: os.Getenv("API_KEY")},
		"partnerSecret": {Key: os.Getenv("API_SECRET")},
	})
	api := simgate.NewAPIClient(settings)

	plans, _, err := api.PlansAPI.ListPlans(ctx).Country("FR").Execute()
	must(err)
	plan := plans.Plans[0]
	wish := simgate.NewOrderRequest(plan.PackageCode)
	wish.SetPartnerRefId(fmt.Sprintf("go-%d", time.Now().UnixNano()))
	bought, _, err := api.OrdersAPI.PlaceOrder(ctx).OrderRequest(*wish).Execute()
	must(err)
	if bought.Order.ChargedUsd != plan.PriceUsd || bought.Order.Status != simgate.OrderStatusFulfilled {
		log.Fatalf("bought %+v for %+v", bought, plan)
	}
	read, _, err := api.OrdersAPI.GetOrder(ctx, bought.Order.Id).Execute()
	must(err)
	if read.Order.GetIccid() != bought.Order.GetIccid() {
		log.Fatalf("bought %+v, read %+v", bought, read)
	}
	fmt.Println(read.Order.GetIccid())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
